package broker

import (
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natsext"
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
		has, reading := last[t.at.log()], false
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
	end, err := b.lastOf(ctx, stream, ">")
	if errors.Is(err, errNone) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	b.noteStream(stream, streamSeen{last: end.seq})
	if end.seq < from {
		return nil, true, nil
	}
	last, sure = map[string]uint64{}, true // of quiet inboxes hardly any has one
	for batch := range slices.Chunk(subs, auditBatch) {
		subjects := make([]string, 0, len(batch)+1)
		for _, t := range batch {
			subjects = append(subjects, t.at.log())
		}
		part, err := b.lastSequences(stream, append(subjects, end.subject), from)
		if err != nil {
			return nil, false, err
		}
		sure = sure && part[end.subject] >= end.seq
		maps.Copy(last, part)
	}
	return last, sure, nil
}

// confirm asks the leader whether the stream is the one that is known, and has its inboxes look where they stand if it was made anew.
func (b *Broker) confirm(stream string) (streamState, error) {
	ctx, cancel := context.WithTimeout(b.ctx, auditTime)
	defer cancel()
	life := b.Life()
	s, err := b.state(ctx, stream, "")
	if err == nil {
		b.noteStream(stream, streamSeen{last: s.last, created: s.created, life: life})
	}
	return s, err
}

// lastSequences returns the sequence of the last message of each subject that has one at from or later.
func (b *Broker) lastSequences(stream string, subjects []string, from uint64) (map[string]uint64, error) {
	ctx, cancel := b.waiting(b.ctx, auditTime)
	defer cancel()
	req, err := json.Marshal(struct {
		Subjects []string `json:"multi_last"`
		From     uint64   `json:"seq,omitempty"`
	}{subjects, from})
	if err != nil {
		return nil, err
	}
	var end *nats.Msg
	answer, err := natsext.RequestMany(ctx, b.nc, "$JS.API.DIRECT.GET."+stream, req, natsext.RequestManySentinel(func(m *nats.Msg) bool {
		if len(m.Data) == 0 && m.Header.Get("Status") != "" { // no record is empty
			end = m
		}
		return end != nil
	}))
	if err != nil {
		return nil, err
	}
	last, before := map[string]uint64{}, uint64(0)
	for m, err := range answer {
		if err != nil {
			return nil, err
		}
		if number(m.Header, "Nats-Last-Sequence") != before { // each names the one before it in the answer
			return nil, errSilent
		}
		before = number(m.Header, "Nats-Sequence")
		if of := m.Header["Nats-Subject"]; len(of) > 0 {
			last[of[len(of)-1]] = before
		}
	}
	switch {
	case end == nil:
		return nil, errSilent
	case end.Header.Get("Status") == noneStatus && len(last) == 0:
		return last, nil
	case end.Header.Get("Status") != endStatus || number(end.Header, "Nats-Last-Sequence") != before || number(end.Header, "Nats-Num-Pending") != 0:
		return nil, errors.New("the last messages of " + stream + ": " + end.Header.Get("Description"))
	}
	return last, nil
}

// What ends an answer of many messages.
const (
	endStatus  = "204" // that was all
	noneStatus = "404" // there is none
)
