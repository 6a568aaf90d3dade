package presence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Dialled is how the connection of a session comes about that its edge makes, and not its agent.
type Dialled struct {
	Address string // which no other agent of the tenant has while the session lasts
	By      []byte // for whom it is made, in words of the edges

	entry string // tells the address's entry from earlier ones of the same agent
}

// AddressError is the error of a claim whose address is another agent's.
type AddressError struct {
	Address string
	By      agora.AgentID
	Pending bool // that one's own claim is under way, or failed within the last minute
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("address %q is that of agent %q", e.Address, e.By)
}

// addressesKey is the hash of the addresses that agents of a tenant have: "<member> <entry> <ms>". An entry is written before the claim that
// it is for, whose record decides: see addressOwned. What no record bears out is void when no claim on its way can still be meant.
func addressesKey(tenant string) string {
	return root + "{addresses:" + agora.EncodeToken(tenant) + "}"
}

// stored is a dial as a record has it; empty for none.
func (d *Dialled) stored() string {
	if d == nil {
		return ""
	}
	return d.entry + " " + d.Address
}

// by is for whom, as a record has it.
func (d *Dialled) by() string {
	if d == nil {
		return ""
	}
	return string(d.By)
}

// parseDial reads what a record has; nil for none.
func parseDial(dial, by string) *Dialled {
	entry, address, ok := strings.Cut(dial, " ")
	if !ok {
		return nil
	}
	return &Dialled{Address: address, By: []byte(by), entry: entry}
}

// Dials is the sessions whose connections their edges make: the addresses of their agents, and which edge goes on with one that has lost its own.
type Dials struct {
	*backend
	leases Leases
}

// reserve gives an agent the address of d, for the claim that follows, and returns what its entry was before. An AddressError where another
// agent has it. No entry, while the server is not whole: UNAVAILABLE for ErrIncomplete.
func (s Dials) reserve(ctx context.Context, tenant string, id agora.AgentID, d *Dialled) (was string, err error) {
	m, sure, void := member(tenant, id), false, ""
	for {
		r, err := s.runAll(ctx, []call{
			{addressTakeScript, []string{addressesKey(tenant)}, []any{d.Address, m, d.entry, flag(sure), void}},
			{wholeScript, []string{wholeKey}, nil},
		})
		if err != nil {
			return "", err
		}
		switch a := r[0]; a.at(0).str() {
		case "ok":
			return a.at(1).str(), nil
		case "unsure":
			if err := s.surely(ctx, r[1].yes()); err != nil {
				return "", err
			}
			sure = true
		default:
			void = a.at(1).str()
			if err := s.addressOwned(ctx, tenant, d.Address, void, time.Duration(a.at(2).int())*time.Millisecond); err != nil {
				return "", err
			}
		}
	}
}

// addressOwned returns an AddressError where an entry of such an age counts: its agent's record has the address, or may have it soon.
func (s Dials) addressOwned(ctx context.Context, tenant, address, held string, age time.Duration) error {
	m, _, _ := strings.Cut(held, " ")
	_, by, _ := splitMember(m)
	taken := &AddressError{Address: address, By: by, Pending: true}
	r, err := s.fields(ctx, []entry{{member: m}}, "state", "dial")
	if err != nil {
		return err
	}
	if d := parseDial(r[0].at(1).str(), ""); d != nil && d.Address == address && r[0].at(0).str() != "0" {
		taken.Pending = false
		return taken
	}
	if age < s.settled {
		return taken
	}
	return s.sure(ctx)
}

// unreserve makes an entry what it was before it was reserved for a claim that failed.
func (s Dials) unreserve(ctx context.Context, tenant string, id agora.AgentID, d *Dialled, was string) {
	if err := s.freeAddress(ctx, tenant, id, d, was); err != nil {
		s.log.Debug("address was not given back, and is free in a minute", "agent", id, "err", err)
	}
}

// FreeAddress frees the address of a session that is over and was dialled: any agent may have it from now on. Should nobody do so, it is free in a minute.
func (s Dials) FreeAddress(ctx context.Context, c Claim, d Dialled) error {
	return s.freeAddress(ctx, c.Tenant, c.Agent, &d, "")
}

// freeAddress drops the entry of an address, or puts another in its place, where it is that of d.
func (s Dials) freeAddress(ctx context.Context, tenant string, id agora.AgentID, d *Dialled, was string) error {
	_, err := s.run(ctx, call{addressFreeScript, []string{addressesKey(tenant)}, []any{d.Address, member(tenant, id) + " " + d.entry + " ", was}})
	return err
}

// keepAddress writes the entry of an address again that the server may have lost, or has the void one of another agent in its place, and answers with
// another's otherwise.
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

// Contested returns sessions of a holder's whose address has become another agent's: presence had lost them, and that one was given it. They are to
// be ended. It goes through those that the holder has dialled, a hundred at a time, each about once a minute, and one that was just written again, or adopted, before others. It
// drops what is stale in their index. One round trip when there is nothing to do.
func (s Dials) Contested(ctx context.Context, h Holder) ([]Orphan, error) {
	r, err := s.run(ctx, indexTake(dialsKey(h), s.settled, tidyBatch, 0))
	if err != nil {
		return nil, err
	}
	_, es := r.due()
	if len(es) == 0 {
		return nil, nil
	}
	records, err := s.fields(ctx, es, orphanFields...)
	if err != nil {
		return nil, err
	}
	var held []Orphan
	var stale []entry
	var keep []call
	for i, e := range es {
		if o, is := parseOrphan(e.member, records[i]); is && o.Phase == Active && o.Holder == h {
			o.seen = e
			held, keep = append(held, o), append(keep, keepAddress(o.Tenant, o.Agent, &o.Dial, ""))
		} else {
			stale = append(stale, e)
		}
	}
	if len(stale) > 0 {
		if _, err = s.run(ctx, indexDel(dialsKey(h), anyAge, stale...)); err != nil {
			return nil, err
		}
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

// keep has the address of a session be its agent's where another's entry is void; an AddressError where it is another's, as an answer to keepAddress says.
func (s Dials) keep(ctx context.Context, o Orphan, other reply) (err error) {
	for err == nil && other.at(0).str() != "" {
		void := other.at(0).str()
		if err = s.addressOwned(ctx, o.Tenant, o.Dial.Address, void, time.Duration(other.at(1).int())*time.Millisecond); err == nil {
			other, err = s.run(ctx, keepAddress(o.Tenant, o.Agent, &o.Dial, void))
		}
	}
	return err
}

// SetBy replaces for whom the connection of a session is made. ErrDeposed when the claim is no longer c's, or its session has another connection.
func (s Dials) SetBy(ctx context.Context, c Claim, by []byte) error {
	return s.asHolder(ctx, call{dialByScript, []string{c.keys().rec}, []any{strconv.FormatUint(c.Epoch, 10), string(by)}})
}
