package audit

import (
	"context"

	"github.com/agora-relay/agora/broker/jslog"
)

// pass is an audit of all inboxes, few at a time: many at once would hold up all that the connection carries. What had been
// stored when they were compared last they have, so only what came since is asked for. Those that read the log then were not compared,
// and are compared with all of it. An inbox that is opened later asks the leader how far it has to read, which is beyond
// what had been stored then.
type pass struct {
	left    []Subject
	step    int        // so many of them at a time
	from    uint64     // what was stored before they have
	done    Comparison // what is known once all are compared
	sure    bool       // all answers were as new as the leader's
	reading []Subject  // those with inboxes that read the log
}

// CompareAll audits all inboxes now.
func (a *Auditor) CompareAll(ctx context.Context, log *jslog.Client) error {
	err := a.Begin(ctx)
	if err == nil {
		err = a.next(ctx, log, len(a.pass.left))
	}
	return err
}

// Begin begins to audit all inboxes, in Next's steps.
func (a *Auditor) Begin(ctx context.Context) error {
	a.pass = pass{}
	s, err := a.cfg.Confirm(ctx)
	if err != nil {
		return err
	}
	c := a.cfg.Listeners.Compared(a.cfg.Stream)
	p := pass{done: Comparison{UpTo: s.Last, Anew: c.Anew}, sure: true, left: a.cfg.Listeners.Subjects(a.cfg.Stream)}
	if c.UpTo > 0 {
		p.from = c.UpTo + 1
	}
	if p.step = max(jslog.LastBatch, len(p.left)/a.cfg.Looks+1); s.Last < p.from {
		p.step = len(p.left) // none of them is asked for
	}
	a.pass = p
	return nil
}

// Auditing reports whether steps are left of what was begun.
func (a *Auditor) Auditing() bool { return len(a.pass.left) > 0 }

// Next audits some of the inboxes that are left.
func (a *Auditor) Next(ctx context.Context, log *jslog.Client) error {
	return a.next(ctx, log, a.pass.step)
}

func (a *Auditor) next(ctx context.Context, log *jslog.Client, n int) error {
	p := &a.pass
	n = min(n, len(p.left))
	part, err := a.compare(ctx, log, p.left[:n], p.from)
	if err != nil {
		return err
	}
	p.left, p.sure, p.reading = p.left[n:], p.sure && part.sure, append(p.reading, part.reading...)
	if len(p.left) > 0 {
		return nil
	}
	before, err := a.compare(ctx, log, a.reading, 0)
	if err == nil && p.sure && before.sure {
		a.cfg.Listeners.SetCompared(a.cfg.Stream, p.done)
		a.reading = p.reading
	}
	a.pass = pass{}
	return err
}
