package broker

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/jetstreamext"
)

// auditor finds what no live record tells: a record whose handing on was lost, with none after it. It
// compares the position of every inbox with the log's after a reconnect, after a
// stream has a new leader, and now and then always.
type auditor struct {
	some chan struct{} // holds one token when there is something to do
	todo auditSet
}

// What an audit may be asked for.
const (
	checkStreams = 1 << iota // that the streams still exist
	checkAll                 // the inboxes' positions
)

const (
	leaderElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	auditRetry    = time.Second // after an audit that could not be done
	auditSettle   = 20 * time.Millisecond
)

func (a *auditor) init() { a.some = make(chan struct{}, 1) }

// ask has an audit done soon.
func (a *auditor) ask(what uint32) {
	a.todo.or(what)
	signal(a.some)
}

// watchLeaders has the inboxes audited when a stream has a new leader: the old one
// may have died between storing a record and handing it on.
func (b *Broker) watchLeaders() error {
	mine := make(map[string]bool)
	for _, s := range b.Streams() {
		mine[s] = true
	}
	_, err := b.nc.Subscribe(leaderElected+"*", func(m *nats.Msg) {
		if mine[strings.TrimPrefix(m.Subject, leaderElected)] {
			b.auditor.ask(checkAll)
		}
	})
	return err
}

// audit runs until the Broker closes.
func (b *Broker) audit() {
	timer := time.NewTimer(b.cfg.Audit)
	defer timer.Stop()
	for {
		select {
		case <-b.ctx.Done():
			return
		case <-b.auditor.some:
			// A new leader tells several times, and is asked once.
			if pauseFor(b.ctx, auditSettle) != nil {
				return
			}
		case <-timer.C:
			b.auditor.todo.or(checkAll)
		}
		next := b.cfg.Audit
		what := b.auditor.todo.take()
		if err := b.auditOnce(what); err != nil && b.ctx.Err() == nil {
			b.cfg.Log.Warn("audit", "err", err)
			b.auditor.todo.or(what)
			next = min(next, auditRetry)
		}
		timer.Reset(next)
	}
}

func (b *Broker) auditOnce(what uint32) error {
	if what&checkStreams != 0 {
		ctx, cancel := context.WithTimeout(b.ctx, 5*readTime)
		defer cancel()
		if err := b.ensureStreams(ctx); err != nil {
			return err
		}
	}
	if !withAudits || what&checkAll == 0 {
		return nil
	}
	var errs []error
	for stream, tops := range b.topics.list() {
		if _, err := b.state(b.ctx, stream, ""); err != nil { // for the clock
			errs = append(errs, err)
			continue
		}
		errs = append(errs, b.auditStream(stream, tops))
	}
	return errors.Join(errs...)
}

// auditStream compares the inboxes of one stream, in batches.
func (b *Broker) auditStream(stream string, tops []*topic) error {
	for len(tops) > 0 {
		n := min(len(tops), auditBatch)
		if err := b.auditTopics(stream, tops[:n]); err != nil {
			return err
		}
		tops = tops[n:]
	}
	return nil
}

// auditTopics asks for the last record of each subject. A replica may answer that, and lag; so the
// subject of the stream's last message, as the leader knows it, is asked for along: if the answer
// knows that message, it knows all before it.
func (b *Broker) auditTopics(stream string, tops []*topic) error {
	at := b.Now()
	subjects := make([]string, 0, len(tops)+1)
	for _, t := range tops {
		subjects = append(subjects, t.at.log)
	}
	end, err := b.lastOf(b.ctx, stream, ">")
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	if err == nil {
		b.saw(stream, end.seq, time.Time{})
		subjects = append(subjects, end.subject)
	}
	last, err := b.lastSequences(stream, subjects)
	if err != nil {
		return err
	}
	sure := end == nil || last[end.subject] >= end.seq
	for _, t := range tops {
		t.each(func(i *Inbox) {
			if i.checked(last[t.at.log], at, sure) {
				b.count.repaired.Add(1)
			}
		})
	}
	return nil
}

// lastSequences returns the sequence of the last message of each subject that has one.
func (b *Broker) lastSequences(stream string, subjects []string) (map[string]uint64, error) {
	ctx, cancel := b.waiting(b.ctx, readTime)
	defer cancel()
	last := make(map[string]uint64, len(subjects))
	answer, err := jetstreamext.GetLastMsgsFor(ctx, b.js, stream, subjects)
	if err != nil {
		return nil, err
	}
	pending := uint64(1)
	for m, err := range answer {
		if errors.Is(err, jetstreamext.ErrNoMessages) {
			return last, nil
		}
		if err != nil {
			return nil, err
		}
		last[m.Subject] = m.Sequence
		pending = number(m.Header, "Nats-Num-Pending")
	}
	if pending != 0 {
		return nil, errSilent
	}
	return last, nil
}
