package soak

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// agent is one client of a run.
type agent struct {
	run   *Run
	id    string
	c     *client.Client // once connected
	gaps  *verify.Gaps   // of its mailbox
	seats map[string]*member
}

func (r *Run) newAgent(what string, i int) agent {
	return agent{run: r, id: fmt.Sprintf("%s-%s%d", r.name, what, i), gaps: &verify.Gaps{}, seats: map[string]*member{}}
}

// atOnce is how many agents connect, or leave, at a time.
const atOnce = 32

// people makes the agents, the spaces, and the lines between them.
func (r *Run) people() {
	for i := range r.cfg.Senders {
		r.senders = append(r.senders, &sender{agent: r.newAgent("s", i), index: i})
	}
	for i := range r.cfg.Receivers {
		r.receivers = append(r.receivers, &receiver{agent: r.newAgent("r", i)})
	}
	for _, p := range r.receivers {
		for _, s := range r.senders {
			window := max(4, mailboxParts/2/len(r.senders))
			from := source{verify.NewTrack(p.id, p.gaps), verify.NewTrack(p.id, p.gaps), s.id}
			s.talks = append(s.talks, verify.NewLine(r.tally.Tally, s.id+" to "+p.id, window, from.talk))
			s.asks = append(s.asks, verify.NewLine(r.tally.Tally, s.id+" asks "+p.id, window, from.asks))
			p.from = append(p.from, from)
		}
	}
	for k := range r.cfg.Spaces {
		r.rooms = append(r.rooms, r.newRoom(k))
	}
}

// mailboxParts is how much may be under way to one receiver: well below what
// a mailbox keeps, so that a run provokes no loss by itself.
const mailboxParts = 2048

// agents returns all agents.
func (r *Run) agents() (all []*agent) {
	for _, s := range r.senders {
		all = append(all, &s.agent)
	}
	for _, p := range r.receivers {
		all = append(all, &p.agent)
	}
	return all
}

// lines returns all lines.
func (r *Run) lines() (all []*verify.Line) {
	for _, s := range r.senders {
		all = append(append(all, s.talks...), s.asks...)
		for _, desk := range s.desks {
			all = append(all, desk.line)
		}
	}
	return all
}

// Agents returns the ids of all agents of the run.
func (r *Run) Agents() (ids []string) {
	for _, a := range r.agents() {
		ids = append(ids, a.id)
	}
	return ids
}

// Spaces returns how many members each space of the run has.
func (r *Run) Spaces() map[string]int {
	members := map[string]int{}
	for _, room := range r.rooms {
		members[room.name] = len(room.members)
	}
	return members
}

// connect connects all agents and joins the spaces.
func (r *Run) connect(ctx context.Context) error {
	return each(r.agents(), func(a *agent) error {
		c, err := client.Dial(ctx, r.config(a))
		if err != nil {
			return err
		}
		a.c = c
		for name, seat := range a.seats {
			if seat.space, err = c.Join(ctx, name); err != nil {
				return err
			}
		}
		return nil
	})
}

func (r *Run) config(a *agent) client.Config {
	return client.Config{
		URLs: r.cfg.Edges, Agent: a.id, Token: r.cfg.Token, TokenSource: r.cfg.TokenSource, TLS: r.cfg.TLS, Card: client.Card{Type: "soak"},
		Dial: r.net.DialContext, Patience: r.cfg.Patience, Backoff: r.cfg.Backoff, Log: r.cfg.Log,
		OnStatus: func(s client.Status) { r.away.status(a.id, s, time.Now()) },
		OnGap: func(g client.Gap) {
			r.gaps.Add(1)
			if seat := a.seats[g.Space]; seat != nil {
				seat.gaps.Add(g.FromSeq, g.ToSeq)
			} else {
				a.gaps.Add(g.FromSeq, g.ToSeq)
			}
		},
	}
}

// goodbye ends the sessions of all that are connected.
func (r *Run) goodbye() {
	_ = each(r.agents(), func(a *agent) error {
		if a.c != nil {
			_ = a.c.Close() // one that ended before was counted when it did
		}
		return nil
	})
}

// watch writes down when the client gives up.
func (a *agent) watch(ctx context.Context) {
	select {
	case <-a.c.Done():
		a.gaps.End()
		for _, seat := range a.seats {
			seat.gaps.End()
		}
		a.run.tally.Violated(Ended, "the client of %s ended: %v", a.id, a.c.Err())
	case <-ctx.Done():
	}
}

// over reports whether nothing can be sent any more.
func (a *agent) over() bool {
	select {
	case <-a.c.Done():
		return true
	default:
		return false
	}
}

// each calls f for all agents, some at a time, and returns what went wrong.
func each(all []*agent, f func(*agent) error) error {
	var wg sync.WaitGroup
	free := make(chan struct{}, atOnce)
	errs := make([]error, len(all))
	for i, a := range all {
		free <- struct{}{}
		wg.Go(func() {
			errs[i] = f(a)
			<-free
		})
	}
	wg.Wait()
	return errors.Join(errs...)
}
