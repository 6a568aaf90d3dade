package presence

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
)

// keepAddress writes the entry of an address again that the server may have lost, or has the void one of another agent
// in its place, and answers with another's otherwise.
func keepAddress(tenant string, id agora.AgentID, d *Dialled, void string) call {
	return call{addressKeepScript, []string{addressesKey(tenant)}, []any{d.Address, member(tenant, id), d.entry, void}}
}

// contestedSoon has Contested look at a session of a holder's next.
func (s Dials) contestedSoon(h Holder, m string) call { return indexAdd(dialsKey(h), -s.settled, m) }

// adopted has Contested look next at a session that was just adopted where its address is another's, or may be.
func (s Dials) adopted(ctx context.Context, r ClaimRequest, d *Dialled) {
	other, err := s.run(ctx, keepAddress(r.Tenant, r.Agent, d, ""))
	if err == nil && other.at(0).str() != "" {
		_, err = s.run(ctx, s.contestedSoon(r.Holder, member(r.Tenant, r.Agent)))
	}
	if err != nil {
		s.log.Debug("address of a session that was adopted is looked at in a minute", "agent", r.Agent, "err", err)
	}
}

// Contested returns sessions of a holder's whose address has become another agent's: presence had lost them, and that
// one was given it. They are to be ended. It goes through those that the holder has dialled, a hundred at a time, each
// about once a minute, and one that was just written again, or adopted, before others. It drops what is stale in their
// index. One round trip when there is nothing to do.
func (s Dials) Contested(ctx context.Context, h Holder) ([]Orphan, error) {
	held, err := s.listed(ctx, dialsKey(h), indexTake(dialsKey(h), s.settled, tidyBatch, 0), func(o Orphan) bool {
		return o.Phase == Active && o.Holder == h
	})
	if err != nil {
		return nil, err
	}
	keep := make([]call, len(held))
	for i := range held {
		keep[i] = keepAddress(held[i].Tenant, held[i].Agent, &held[i].Dial, "")
	}
	others, err := s.runAll(ctx, keep)
	if err != nil {
		return nil, err
	}
	var contested []Orphan
	for i, o := range held {
		err := s.keep(ctx, o, others[i])
		taken, is := errors.AsType[*AddressError](err)
		switch {
		case is && taken.Pending: // it may be another's soon
			_, err = s.run(ctx, s.contestedSoon(h, o.seen.member))
		case is:
			contested, err = append(contested, o), nil
		}
		if err != nil {
			return contested, err
		}
	}
	return contested, nil
}

// keep has the address of a session be its agent's where another's entry is void; an AddressError where it is
// another's, as an answer to keepAddress says.
func (s Dials) keep(ctx context.Context, o Orphan, other reply) (err error) {
	for err == nil && other.at(0).str() != "" {
		void := other.at(0).str()
		if err = s.owned(ctx, o.Dial.Address, "", void, time.Duration(other.at(1).int())*time.Millisecond); err == nil {
			other, err = s.run(ctx, keepAddress(o.Tenant, o.Agent, &o.Dial, void))
		}
	}
	return err
}
