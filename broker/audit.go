package broker

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
)

// auditTime is for one question: a stream without a leader must not hold up the word of a new one.
const auditTime = time.Second

// errMadeAnew means that a stream is not the one that was known: what was known of its inboxes counts no more.
var errMadeAnew = errors.New("the log was made anew")

// audited is what came of comparing inboxes with the log.
type audited struct {
	sure    bool            // all that was stored when it began was reckoned with
	reading []*subscription // those with inboxes that were not compared, as they read the log
}

// auditStream compares the inboxes of subjects of one stream with what is stored from a sequence on.
func (b *Broker) auditStream(stream string, subs []*subscription, from uint64) (audited, error) {
	if len(subs) == 0 {
		return audited{sure: true}, nil
	}
	at := b.Now()
	last, sure, err := b.lastOfAll(stream, subs, from)
	if err != nil {
		return audited{}, err
	}
	if _, err := b.confirm(stream); err != nil { // an empty log made anew says nothing of the old one
		return audited{}, err
	}
	if from > b.dispatch.compared(stream).upTo+1 {
		return audited{}, errMadeAnew
	}
	a := audited{sure: sure}
	for _, t := range subs {
		has, reading := last[t.at.Log()], false
		t.each(func(i *Inbox) {
			switch i.compare(has, at, sure) {
			case missedRecords:
				b.count.repaired.Add(1)
			case catchingUp:
				reading = true
			}
		})
		if reading {
			a.reading = append(a.reading, t)
		}
	}
	return a, nil
}

// lastOfAll asks for the last record of each subject, where it was stored at from or later, a batch at a time. A replica may answer that,
// and lag; so the subject of the stream's last message, as the leader knows it, is asked for along: if an answer
// knows that message, it knows all before it. sure reports whether all of them did.
func (b *Broker) lastOfAll(stream string, subs []*subscription, from uint64) (last map[string]uint64, sure bool, err error) {
	ctx, cancel := context.WithTimeout(b.ctx, auditTime)
	defer cancel()
	end, err := b.log.Last(ctx, stream, ">")
	if errors.Is(err, jslog.ErrNone) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	b.streams.note(stream, streamSeen{last: end.Seq})
	if end.Seq < from {
		return nil, true, nil
	}
	last, sure = map[string]uint64{}, true // of quiet inboxes hardly any has one
	for batch := range slices.Chunk(subs, jslog.LastBatch) {
		subjects := make([]string, 0, len(batch)+1)
		for _, t := range batch {
			subjects = append(subjects, t.at.Log())
		}
		part, err := b.log.LastSequences(b.ctx, auditTime, stream, append(subjects, end.Subject), from)
		if err != nil {
			return nil, false, err
		}
		sure = sure && part[end.Subject] >= end.Seq
		maps.Copy(last, part)
	}
	return last, sure, nil
}

// confirm asks the leader whether the stream is the one that is known, and has its inboxes look where they stand if it was made anew.
func (b *Broker) confirm(stream string) (jslog.State, error) {
	ctx, cancel := context.WithTimeout(b.ctx, auditTime)
	defer cancel()
	life := b.Life()
	s, err := b.log.State(ctx, stream, "")
	if err == nil {
		b.streams.note(stream, streamSeen{last: s.Last, created: s.Created, life: life})
	}
	return s, err
}
