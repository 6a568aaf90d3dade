package soak

import (
	"context"
	"math/rand/v2"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// sender is an agent that sends, asks and publishes.
type sender struct {
	agent
	index int
	talks []*verify.Line // to each receiver: one-shots and streams
	asks  []*verify.Line // to each receiver: questions
	desks []desk         // in the spaces that it publishes into
}

// How the rate is shared out; what spaces have goes to one-shots where there are none.
const (
	talkShare, chunkShare, askShare, eventShare = 0.4, 0.3, 0.1, 0.2

	maxChunks = 200 // of a stream
	giveUp    = 20  // one stream of so many is cancelled by its sender
)

// begin starts what the sender does.
func (s *sender) begin() {
	r := s.run
	rate := r.cfg.Rate / float64(r.cfg.Senders)
	talk := talkShare
	if len(s.desks) == 0 {
		talk += eventShare
	} else {
		r.busy.Go(func() { s.publish(newPacer(rate * eventShare)) })
	}
	r.busy.Go(func() { s.talk(newPacer(rate*talk), rate*chunkShare) })
	r.busy.Go(func() { s.ask(newPacer(rate * askShare)) })
}

// talk sends one-shots and streams, in one order for each receiver, and one stream at a time.
func (s *sender) talk(p *pacer, chunkRate float64) {
	streaming := make(chan struct{}, 1)
	for p.wait(s.run.sending) && !s.over() {
		k := rand.IntN(len(s.talks))
		l, to := s.talks[k], s.run.receivers[k].id
		if l.Full() {
			continue
		}
		select {
		case streaming <- struct{}{}:
			s.stream(l, to, newPacer(chunkRate), func() { <-streaming })
		default:
			s.message(l, to)
		}
	}
}

// message sends a one-shot.
func (s *sender) message(l *verify.Line, to string) {
	n := l.Take(verify.Sent{Kind: message})
	p, err := s.c.SendAsync(s.run.calls, to, body(message, s.index, n))
	if err != nil {
		l.Set(n, s.run.tally.outcome(err))
		return
	}
	s.run.busy.Go(func() { l.Set(n, s.run.tally.outcome(p.Wait(s.run.calls))) })
}

// stream opens a stream and writes it beside the caller; done is called at its end.
func (s *sender) stream(l *verify.Line, to string, p *pacer, done func()) {
	f := s.run.newFlow(l.Name())
	n := l.Take(verify.Sent{Kind: stream, Load: f})
	st, err := s.c.OpenStream(s.run.calls, to, body(stream, s.index, n))
	l.Set(n, s.run.tally.outcome(err))
	if err != nil {
		f.Set(verify.Unknown)
		done()
		return
	}
	s.run.busy.Go(func() {
		defer done()
		s.pour(st, f, p, 1+rand.IntN(maxChunks))
	})
}

// pour writes chunks into a stream, and ends it; p may be nil for as fast as it goes.
func (a *agent) pour(st *client.Stream, f *verify.Flow, p *pacer, chunks int) {
	for range chunks {
		if p != nil && (!p.wait(a.run.sending) || !keepUp(a.run.sending, f, p)) {
			break
		}
		if _, err := st.WriteString(f.Write()); err != nil {
			a.run.tally.outcome(err)
			st.Cancel()
			f.Set(verify.Unknown)
			return
		}
	}
	if p != nil && rand.IntN(giveUp) == 0 {
		st.Cancel()
		f.Set(verify.Refused)
		return
	}
	f.End()
	if a.run.tally.outcome(st.Close()) == verify.Stored {
		f.Set(verify.Stored)
	} else {
		f.Set(verify.Unknown)
	}
}

// keepUp waits while a stream's receiver is far behind; it returns false when ctx ends.
func keepUp(ctx context.Context, f *verify.Flow, p *pacer) bool {
	for f.Behind() > mailboxParts/4 {
		if !p.wait(ctx) {
			return false
		}
	}
	return true
}

// listen takes what comes to a sender: replies that nobody waits for.
func (s *sender) listen(ctx context.Context) {
	for m, err := range s.c.Messages(ctx) {
		if err != nil {
			return
		}
		s.run.tally.Repeated(reply, "%s got from %s what it does not wait for: %.100s", s.id, m.From, m.Payload)
		_ = m.Close() // never fails
	}
}
