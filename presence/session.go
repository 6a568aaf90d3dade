package presence

import (
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// Sessions is who holds which agent's id, and the life of its session from the claim to its end.
type Sessions struct {
	*backend
	leases    Leases
	dials     Dials
	spaces    Spaces
	positions Positions
	cards     cards
	reviews   *sync.Pool // of *review
}

// Lose says that the socket is gone: active becomes grace, until now plus Config.Grace; the positions are written, as
// clean. A holder that never began has no positions: those of the last one stay, and so does a grace that was running
// before. After a goodbye the grace is over at once: the caller ends the session when nothing is under way any more,
// and the one who claims its id before does. ErrDeposed when the claim is no longer c's.
//
// What is sent to the agent is noted from now on, until its next session begins; p.TailAt should be as of now for
// Record.Quiet to tell the whole truth.
func (s Sessions) Lose(ctx context.Context, c Claim, p Position, spaces map[string]uint64, goodbye bool) error {
	grace := s.cfg.Grace
	if goodbye {
		grace = 0
	}
	return s.lose(ctx, c, grace, s.positions.args(p, time.Time{}, spaces))
}

// Return gives a claim back under which nothing was delivered and no lane used: like Lose, but where the agent stands,
// and how cleanly that is known, stay as they were before the claim, and nobody has to wait for its holder.
func (s Sessions) Return(ctx context.Context, c Claim) error { return s.lose(ctx, c, s.cfg.Grace, nil) }

func (s Sessions) lose(ctx context.Context, c Claim, grace time.Duration, positions []any) error {
	k := c.keys()
	args := append([]any{c.Epoch, grace.Milliseconds()}, positions...)
	ahead := max(s.cfg.Grace, s.cfg.Lease)
	r, err := s.runAll(ctx, []call{
		indexAdd(dueKey, ahead, member(c.Tenant, c.Agent)), // before: an edge that dies in between leaves no session behind
		{loseScript, []string{k.rec, k.spaces}, args},
	})
	if err != nil {
		return err
	}
	if !r[1].at(0).yes() {
		return ErrDeposed
	}
	left := time.Duration(r[1].at(1).int()) * time.Millisecond
	if grace == 0 {
		return nil
	}
	if c.Dialled { // behind: who looks at it finds it lost. An edge that dies in between leaves it to who finds that dead
		if _, err := s.run(ctx, indexAdd(adoptKey, 0, member(c.Tenant, c.Agent))); err != nil {
			return err
		}
	}
	if left == ahead {
		return nil
	}
	_, err = s.run(ctx, indexAdd(dueKey, left, member(c.Tenant, c.Agent)))
	return err
}

// Flushed says that nothing of a lost session is under way at its holder any
// more, and nothing was given up: the one who continues with it, or ends it, need not
// wait for that holder, which may be gone by then. ErrDeposed when
// the claim is no longer c's, or not lost.
func (s Sessions) Flushed(ctx context.Context, c Claim) error {
	return s.asHolder(ctx, call{flushedScript, []string{c.keys().rec}, []any{c.Epoch}})
}

// End says that the agent said goodbye: active or grace becomes ending at once. The caller finishes it (Ending), or
// any edge's Sweep does. Two round trips. ErrDeposed when the claim is no longer c's.
func (s Sessions) End(ctx context.Context, c Claim) error {
	k, m := c.keys(), member(c.Tenant, c.Agent)
	r, err := s.runAll(ctx, []call{
		indexAdd(dueKey, s.cfg.Lease, m),
		list(c.Tenant, m),
		{endScript, []string{k.rec, k.unsettled}, []any{c.Epoch}},
	})
	if err != nil {
		return err
	}
	if !r[2].yes() {
		return ErrDeposed
	}
	_, err = s.run(ctx, indexAdd(dueKey, 0, m))
	return err
}

// Finished says that all is done of a session that was ending: ending becomes
// none, when c's epoch is still the one; else ErrDeposed. The agent stays known for
// Config.Known, its positions are kept for Config.Remember longer. stays says that it
// was told to be registered without a connection from now on (Record.Until): it is until that is over. The address
// of a dialled session (Record.Dial) is free then: FreeAddress.
func (s Sessions) Finished(ctx context.Context, c Claim, stays bool) error {
	known, m := s.cfg.Known, member(c.Tenant, c.Agent)
	// Sweep drops the agent from the directory once no claim on its way can still mean it.
	due := s.settled + time.Second
	if stays {
		due = 0 // it finds out until when
	}
	r, err := s.runAll(ctx, []call{
		list(c.Tenant, m),
		{finishedScript, c.keys().all(), []any{c.Epoch, known.Milliseconds(), (known + s.cfg.Remember).Milliseconds(), flag(stays)}},
		indexAdd(dueKey, due, m),
	})
	if err != nil {
		return err
	}
	if !r[1].at(0).yes() {
		return ErrDeposed
	}
	var left []string // of what counted, and does not any more
	for i, kind := range []string{ofSession, ofRegistration} {
		if who := r[1].at(1 + i).list(); len(who) > 0 {
			left = append(left, cardField(kind, m, who[0].str()))
		}
	}
	s.cards.compare(ctx, left...)
	return nil
}

// HandedOver is for the old holder, while the new one waits for it (Claim.Unsettled):
// it writes its positions; dirty says that a lane gave up with parts in hand. It is unsettled no more then.
// ErrDeposed when nobody waits for it any more, also after an answer that was lost; then nothing is written.
func (s Sessions) HandedOver(ctx context.Context, c Claim, p Position, spaces map[string]uint64, dirty bool) error {
	k := c.keys()
	args := append([]any{c.Epoch, flag(dirty)}, s.positions.args(p, time.Time{}, spaces)...)
	return s.asHolder(ctx, call{handoverScript, []string{k.rec, k.unsettled, k.spaces}, args})
}

// Lost reports whether a session that the log knows is none of its agent's, as the server has lost it or it is over. It
// then returns an epoch that is younger than all that the server has given or will have given by now, whoever comes
// back with one of them: what claims it later gets a younger one still. UNAVAILABLE for ErrIncomplete rather than a yes
// while the server is not whole.
func (s Sessions) Lost(ctx context.Context, tenant string, id agora.AgentID, session string) (epoch uint64, lost bool, err error) {
	r, err := s.run(ctx, call{lostScript, []string{recordOf(member(tenant, id))}, []any{session}})
	if err != nil || r.uint() == 0 {
		return 0, false, err
	}
	return r.uint(), true, s.sure(ctx)
}
