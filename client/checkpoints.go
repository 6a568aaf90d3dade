package client

import (
	"context"
	"log/slog"
	"time"

	"github.com/agora-relay/agora/wire"
)

// savePause is how long positions may be younger than what State has of them.
const savePause = time.Second

// checkpoints are the positions up to which the application is done with its mailbox and its spaces: edges are told,
// and Config.State.
type checkpoints struct {
	store  State // nil: none are kept
	log    *slog.Logger
	mail   *mailbox
	spaces *memberships

	saved time.Time // when they were saved last; the writer's, and that of run when no writer runs
}

// load takes the positions of an earlier run: that of the mailbox, where it is given, and what State has.
func (c *checkpoints) load(ctx context.Context, given uint64) error {
	c.mail.load(given)
	if c.store == nil {
		return nil
	}
	p, err := c.store.Load(ctx)
	if err != nil {
		return err
	}
	c.mail.load(p.LastSeq)
	c.spaces.load(p.Spaces)
	return nil
}

// state puts the positions into a registration: delivery continues after them.
func (c *checkpoints) state(q *wire.Frame) {
	q.LastSeq, q.HasLastSeq = c.mail.position()
	if all := c.spaces.settled(); len(all) > 0 {
		q.Positions = all
	}
}

// begin takes the position after which the edge continues with the mailbox.
func (c *checkpoints) begin(seq uint64) { c.mail.begin(seq) }

// logs returns the logs that have something to acknowledge now and then.
func (c *checkpoints) logs() []*inlog {
	all := []*inlog{c.mail.inlog}
	for _, s := range c.spaces.all() {
		all = append(all, &s.log)
	}
	return all
}

// save hands the positions to State: at most once a second, or now.
// The writer calls it, and run when no writer runs.
func (c *checkpoints) save(now bool) {
	if c.store == nil || !now && time.Since(c.saved) < savePause {
		return
	}
	c.saved = time.Now()
	p := Positions{Spaces: c.spaces.positions()}
	p.LastSeq, _ = c.mail.settled()
	if err := c.store.Save(context.Background(), p); err != nil {
		c.log.Warn("positions not saved", "err", err)
	}
}
