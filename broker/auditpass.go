package broker

import "github.com/agora-relay/agora/broker/jslog"

// compareAll audits all inboxes now.
func (w *watcher) compareAll() error {
	err := w.beginPass()
	if err == nil {
		err = w.auditNext(len(w.pass.left))
	}
	return err
}

// passShare is which part of the time between two audits of all inboxes one of them takes at most.
const passShare = 3

// auditPass is an audit of all inboxes, few at a time: many at once would hold up all that the connection carries. What had been
// stored when they were compared last they have, so only what came since is asked for. Those that read the log then were not compared,
// and are compared with all of it. An inbox that is opened later asks the leader how far it has to read, which is beyond
// what had been stored then.
type auditPass struct {
	left    []*subscription
	step    int             // so many of them at a time
	from    uint64          // what was stored before they have
	done    comparison      // what is known once all are compared
	sure    bool            // all answers were as new as the leader's
	reading []*subscription // those with inboxes that read the log
}

// beginPass begins to audit all inboxes.
func (w *watcher) beginPass() error {
	w.pass = auditPass{}
	s, err := w.b.confirm(w.stream)
	if err != nil {
		return err
	}
	c := w.b.dispatch.compared(w.stream)
	r := auditPass{done: comparison{upTo: s.Last, anew: c.anew}, sure: true, left: w.b.dispatch.of(w.stream)}
	if c.upTo > 0 {
		r.from = c.upTo + 1
	}
	if r.step = max(jslog.LastBatch, len(r.left)/int(max(1, w.b.cfg.Audit/passShare/lookEvery))+1); s.Last < r.from {
		r.step = len(r.left) // none of them is asked for
	}
	w.pass = r
	return nil
}

// auditNext audits the next n inboxes of the pass.
func (w *watcher) auditNext(n int) error {
	r := &w.pass
	n = min(n, len(r.left))
	part, err := w.b.auditStream(w.stream, r.left[:n], r.from)
	if err != nil {
		return err
	}
	r.left, r.sure, r.reading = r.left[n:], r.sure && part.sure, append(r.reading, part.reading...)
	if len(r.left) > 0 {
		return nil
	}
	before, err := w.b.auditStream(w.stream, w.reading, 0)
	if err == nil && r.sure && before.sure {
		w.b.dispatch.setCompared(w.stream, r.done)
		w.reading = r.reading
	}
	w.pass = auditPass{}
	return err
}
