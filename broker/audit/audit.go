// Package audit compares what is listened to with what the log has stored: it finds the records that no live message told of.
package audit

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"github.com/agora-relay/agora/broker/jslog"
)

// AnswerTime is for one question: a stream without a leader must not hold up the word of a new one.
const AnswerTime = time.Second

// errMadeAnew means that a stream is not the one that was known: what was known of its inboxes counts no more.
var errMadeAnew = errors.New("the log was made anew")

// Subject is a subject of the log that inboxes here listen to.
type Subject interface {
	// Log returns the subject under which its records are stored.
	Log() string

	// Compare tells its inboxes what an audit that began at at found to be the last record of the subject: 0 for none. sure says
	// that the answer is as new as the leader's was then. It reports whether some were not compared, as they read the log. It must not block.
	Compare(last uint64, at time.Time, sure bool) (reading bool)
}

// Listeners are what is listened to in a stream, and how far that was compared. Its methods may be called at the same time.
type Listeners interface {
	Subjects(stream string) []Subject
	Compared(stream string) Comparison
	SetCompared(stream string, c Comparison) // nothing where the stream was made anew since c was asked for
}

// Comparison is how far the inboxes of a stream were compared with it.
type Comparison struct {
	UpTo uint64 // what was stored up to this sequence they have, but those that read the log then; 0 if that is not known
	Anew int    // how often the stream was made anew, as far as was seen
}

// Config sets up an Auditor. All of it is required.
type Config struct {
	Stream    string
	Listeners Listeners
	Now       func() time.Time                               // the log's time
	Confirm   func(ctx context.Context) (jslog.State, error) // asks the leader whether the stream is the one that is known, and has its inboxes look where they stand if not
	Seen      func(last uint64)                              // told the stream's last sequence, as the leader knows it
	Looks     int                                            // in how many steps all are compared, if need be
}

// Auditor audits the inboxes of one stream. One goroutine at a time may use it.
type Auditor struct {
	cfg     Config
	reading []Subject // those with inboxes that read the log when all were compared last, and were not
	pass    pass      // what goes on of comparing all
}

// New returns an Auditor, which has compared nothing yet.
func New(cfg Config) *Auditor { return &Auditor{cfg: cfg} }

// audited is what came of comparing inboxes with the log.
type audited struct {
	sure    bool      // all that was stored when it began was reckoned with
	reading []Subject // those with inboxes that were not compared, as they read the log
}

// Compare compares the inboxes of some subjects with all that is stored.
func (a *Auditor) Compare(ctx context.Context, log *jslog.Client, subs []Subject) error {
	_, err := a.compare(ctx, log, subs, 0)
	return err
}

// compare compares the inboxes of subjects with what is stored from a sequence on.
func (a *Auditor) compare(ctx context.Context, log *jslog.Client, subs []Subject, from uint64) (audited, error) {
	if len(subs) == 0 {
		return audited{sure: true}, nil
	}
	at := a.cfg.Now()
	last, sure, err := a.lastOfAll(ctx, log, subs, from)
	if err != nil {
		return audited{}, err
	}
	if _, err := a.cfg.Confirm(ctx); err != nil { // an empty log made anew says nothing of the old one
		return audited{}, err
	}
	if from > a.cfg.Listeners.Compared(a.cfg.Stream).UpTo+1 {
		return audited{}, errMadeAnew
	}
	done := audited{sure: sure}
	for _, s := range subs {
		if s.Compare(last[s.Log()], at, sure) {
			done.reading = append(done.reading, s)
		}
	}
	return done, nil
}

// lastOfAll asks for the last record of each subject, where it was stored at from or later, a batch at a time. A replica may answer that,
// and lag; so the subject of the stream's last message, as the leader knows it, is asked for along: if an answer
// knows that message, it knows all before it. sure reports whether all of them did.
func (a *Auditor) lastOfAll(ctx context.Context, log *jslog.Client, subs []Subject, from uint64) (last map[string]uint64, sure bool, err error) {
	asking, cancel := context.WithTimeout(ctx, AnswerTime)
	defer cancel()
	end, err := log.Last(asking, a.cfg.Stream, ">")
	if errors.Is(err, jslog.ErrNone) {
		return nil, true, nil
	}
	if err != nil {
		return nil, false, err
	}
	a.cfg.Seen(end.Seq)
	if end.Seq < from {
		return nil, true, nil
	}
	last, sure = map[string]uint64{}, true // of quiet inboxes hardly any has one
	for batch := range slices.Chunk(subs, jslog.LastBatch) {
		subjects := make([]string, 0, len(batch)+1)
		for _, s := range batch {
			subjects = append(subjects, s.Log())
		}
		part, err := log.LastSequences(ctx, AnswerTime, a.cfg.Stream, append(subjects, end.Subject), from)
		if err != nil {
			return nil, false, err
		}
		sure = sure && part[end.Subject] >= end.Seq
		maps.Copy(last, part)
	}
	return last, sure, nil
}
