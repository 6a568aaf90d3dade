package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
)

// auditTime is for one question of an audit: a stream without a leader must not hold up the word of a new one.
const auditTime = time.Second

// errMadeAnew means that a stream is not the one that was known: what was known of its inboxes counts no more.
var errMadeAnew = errors.New("the log was made anew")

// auditor compares the inboxes of one stream with what the log has stored: it finds the records that no live message
// told of. It is its watcher's own.
type auditor struct {
	b       *Broker
	stream  string
	reading []*subscription // those with inboxes that read the log when all were compared last, and were not
	pass    auditPass       // the comparison of all that is under way
}

// auditPass is an audit of all inboxes, few at a time: many at once would hold up all that the connection carries. What
// had been stored when they were compared last they have, so only what came since is asked for. Those that read the log
// then were not compared, and are compared with all of it. An inbox that is opened later asks the leader how far it has
// to read, which is beyond what had been stored then.
type auditPass struct {
	left []*subscription
	step int        // so many of them at a time
	from uint64     // what was stored before they have
	done comparison // what is known once all are compared
	audited
}

// audited is what came of comparing inboxes with the log.
type audited struct {
	sure    bool            // all that was stored when it began was reckoned with
	reading []*subscription // those with inboxes that were not compared, as they read the log
}

// compare compares the inboxes of subjects with what is stored from a sequence on.
func (a *auditor) compare(ctx context.Context, subs []*subscription, from uint64) (audited, error) {
	if len(subs) == 0 {
		return audited{sure: true}, nil
	}
	at := a.b.Now()
	last, sure, err := a.lastOfAll(ctx, subs, from)
	if err != nil {
		return audited{}, err
	}
	if _, err := a.confirm(ctx); err != nil { // an empty log made again says nothing of the old one
		return audited{}, err
	}
	if from > a.b.dispatch.compared(a.stream).upTo+1 {
		return audited{}, errMadeAnew
	}
	done := audited{sure: sure}
	for _, s := range subs {
		if s.compare(last[s.at.Log()], at, sure) {
			done.reading = append(done.reading, s)
		}
	}
	return done, nil
}

// confirm asks the leader whether the stream is the one that is known, and has its inboxes look where they stand if it
// was made again.
func (a *auditor) confirm(ctx context.Context) (jslog.State, error) {
	ctx, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	life := a.b.Life()
	s, err := a.b.log.State(ctx, a.stream, "")
	if err == nil {
		a.b.streams.note(a.stream, streamSeen{last: s.Last, created: s.Created, life: life})
	}
	return s, err
}

// lastOfAll asks for the last record of each subject, where it was stored at from or later, a batch at a time. A
// replica may answer that, and lag; so the subject of the stream's last message, as the leader knows it, is asked for
// along: if an answer knows that message, it knows all before it. sure reports whether all of them did.
func (a *auditor) lastOfAll(ctx context.Context, subs []*subscription, from uint64) (last map[string]uint64, sure bool, err error) {
	asking, cancel := context.WithTimeout(ctx, auditTime)
	defer cancel()
	end, err := a.b.log.Last(asking, a.stream, ">")
	if errors.Is(err, jslog.ErrNone) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	a.b.streams.note(a.stream, streamSeen{last: end.Seq})
	if end.Seq < from {
		return nil, true, nil
	}
	last, sure = map[string]uint64{}, true // of quiet inboxes hardly any has one
	for batch := range slices.Chunk(subs, jslog.LastBatch) {
		subjects := make([]string, 0, len(batch)+1)
		for _, s := range batch {
			subjects = append(subjects, s.at.Log())
		}
		part, err := a.b.log.LastSequences(ctx, auditTime, a.stream, append(subjects, end.Subject), from)
		if err != nil {
			return nil, false, err
		}
		sure = sure && part[end.Subject] >= end.Seq
		maps.Copy(last, part)
	}
	return last, sure, nil
}

// begin begins to audit all inboxes, in so many steps if need be.
func (a *auditor) begin(ctx context.Context, steps int) error {
	a.pass = auditPass{}
	s, err := a.confirm(ctx)
	if err != nil {
		return err
	}
	c := a.b.dispatch.compared(a.stream)
	p := auditPass{done: comparison{upTo: s.Last, anew: c.anew}, left: a.b.dispatch.of(a.stream), audited: audited{sure: true}}
	if c.upTo > 0 {
		p.from = c.upTo + 1
	}
	if p.step = max(jslog.LastBatch, len(p.left)/steps+1); s.Last < p.from {
		p.step = len(p.left) // none of them is asked for
	}
	a.pass = p
	return nil
}

// next audits some of the inboxes that are left.
func (a *auditor) next(ctx context.Context) error {
	p := &a.pass
	n := min(p.step, len(p.left))
	part, err := a.compare(ctx, p.left[:n], p.from)
	if err != nil {
		return err
	}
	p.left, p.sure, p.reading = p.left[n:], p.sure && part.sure, append(p.reading, part.reading...)
	if len(p.left) > 0 {
		return nil
	}
	before, err := a.compare(ctx, a.reading, 0)
	if err == nil && p.sure && before.sure {
		a.b.dispatch.setCompared(a.stream, p.done)
		a.reading = p.reading
	}
	a.pass = auditPass{}
	return err
}

// all audits all inboxes now.
func (a *auditor) all(ctx context.Context) error {
	err := a.begin(ctx, 1)
	if err == nil {
		a.pass.step = len(a.pass.left)
		err = a.next(ctx)
	}
	return err
}
