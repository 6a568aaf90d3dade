package broker

import (
	"context"
	"errors"
	"time"

	"github.com/synadia-io/orbit.go/jetstreamext"
)

// auditTime is for one batch: a stream without a leader must not hold up the word of a new one.
const auditTime = time.Second

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
	ctx, cancel := context.WithTimeout(b.ctx, auditTime)
	defer cancel()
	at := b.Now()
	subjects := make([]string, 0, len(tops)+1)
	for _, t := range tops {
		subjects = append(subjects, t.at.log())
	}
	end, err := b.lastOf(ctx, stream, ">")
	if err != nil && !errors.Is(err, errNone) {
		return err
	}
	if err == nil {
		b.saw(stream, seen{last: end.seq})
		subjects = append(subjects, end.subject)
	}
	last, err := b.lastSequences(ctx, stream, subjects)
	if err != nil {
		return err
	}
	if err := b.confirm(ctx, stream); err != nil { // an empty log made anew says nothing of the old one
		return err
	}
	sure := end == nil || last[end.subject] >= end.seq
	for k, t := range tops {
		has := last[subjects[k]]
		t.each(func(i *Inbox) {
			if i.checked(has, at, sure) {
				b.count.repaired.Add(1)
			}
		})
	}
	return nil
}

// confirm asks the leader whether the stream is the one that is known, and has its inboxes look where they stand if it was made anew.
func (b *Broker) confirm(ctx context.Context, stream string) error {
	life := b.Life()
	s, err := b.state(ctx, stream, "")
	if err == nil {
		b.saw(stream, seen{last: s.last, created: s.created, life: life})
	}
	return err
}

// lastSequences returns the sequence of the last message of each subject that has one.
func (b *Broker) lastSequences(ctx context.Context, stream string, subjects []string) (map[string]uint64, error) {
	ctx, cancel := b.waiting(ctx, auditTime)
	defer cancel()
	last := map[string]uint64{} // of quiet inboxes hardly any has one
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
