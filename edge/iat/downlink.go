package iat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// Headers of the answer to who opens a downlink.
const (
	tokenHeader = "Agora-Resume-Token" // with which the agent takes its own downlink over: ?resume_token=
	seqHeader   = "Agora-Last-Seq"     // position after which delivery goes on
)

// events is the downlink of an agent: what it is sent, as events whose ids are positions. It waits on a small stack, as most downlinks are quiet for most
// of their time: what goes deep is done apart.
func (d *Door) events(x *web.Exchange) error {
	if x.Request.Method == http.MethodHead {
		return d.headEvents(x)
	}
	var c *courier
	var err error
	web.Apart(func() { c, err = d.openEvents(x) })
	if err != nil {
		return err
	}
	d.stats.Downlinks.Add(1)
	defer d.stats.Downlinks.Add(-1)
	return endEvents(x, c.session, c.run(x.Context()))
}

// headEvents answers who asks for the header of a downlink alone.
func (d *Door) headEvents(x *web.Exchange) error {
	if _, err := d.hello(x); err != nil {
		return err
	}
	_, err := x.EventsEvery(d.cfg.KeepAlive)
	return err
}

// openEvents opens the session of a downlink, and begins its events.
func (d *Door) openEvents(x *web.Exchange) (*courier, error) {
	h, err := d.hello(x)
	if err != nil {
		return nil, err
	}
	h.Proof = edge.ByReturn
	l := newLink(h.Receipts)
	s, w, err := x.Actor.Open(x.Context(), h, l)
	if err != nil {
		return nil, err
	}
	x.Header().Set(tokenHeader, w.ResumeToken)
	x.Header().Set(seqHeader, strconv.FormatUint(w.LastSeq, 10))
	e, err := x.EventsEvery(d.cfg.KeepAlive)
	if err == nil {
		err = e.SendLines([]byte(retryLine))
	}
	if err != nil {
		closeEvents(s, edge.Lost)
		return nil, err
	}
	s.Begin()
	return &courier{door: d, session: s, link: l, sink: &eventSink{events: e, reach: x.Reach(), session: s}}, nil
}

// retryLine is the first thing that a downlink says: how long a browser waits before it opens the next one, in milliseconds.
const retryLine = "retry: 1000\n\n"

// endEvents settles the session of a downlink that has ended. Its error is told to the agent as the last event.
func endEvents(x *web.Exchange, s *edge.Session, why edge.Reason) (told error) {
	if why.Cause != edge.Lost {
		told = ended(why)
	} else if e, ok := errors.AsType[*agora.Error](context.Cause(x.Context())); ok { // the edge or the credentials have ended it
		why.Cause, told = edge.Expired, e
		if e.Code == agora.Unavailable {
			why.Cause = edge.Drained
		}
	}
	closeEvents(s, why.Cause)
	return told
}

// closeEvents closes the session of a downlink. Who is gone may come back: nothing says that it did not mean to go.
func closeEvents(s *edge.Session, why edge.Cause) {
	s.Report(edge.Ending{Cause: why})
	s.Closed(false)
}

// ended returns what is told last of why an edge ends a downlink, as a socket is told by its close code; nil where it was told already: an error, or
// that the agent is to come back elsewhere.
func ended(why edge.Reason) error {
	if why.Code != "" || why.Cause == edge.Drained {
		return nil
	}
	code := agora.Unavailable
	if why.Cause == edge.TakenOver {
		code = agora.AgentExists
	}
	return agora.Errorf(code, "%s", why.Text)
}

// hello returns what a request for a downlink says of the agent that comes.
func (d *Door) hello(x *web.Exchange) (h edge.Hello, err error) {
	q, err := x.Query()
	if err != nil {
		return h, err
	}
	id, only := x.Actor.Principal().Sole()
	if !only {
		if id, err = agora.ParseOwnID(q.Get("agent")); err != nil {
			return h, err
		}
	}
	h = edge.Hello{
		Card: agora.Agent{ID: id, Name: string(id), Dialect: iat.Dialect}, Conn: "iat-" + rand.Text()[:16],
		Resume: q.Get("resume_token"), Admission: x.Admission(),
	}
	if h.Receipts, err = wire.ParseReceipts(q.Get("receipts")); err != nil {
		return h, err
	}
	last := cmp.Or(x.Request.Header.Get("Last-Event-ID"), q.Get("last_seq"))
	if last == "" {
		return h, nil
	}
	h.HasLast, h.Lives = true, true
	if h.LastSeq, err = strconv.ParseUint(last, 10, 53); err != nil {
		return h, agora.Errorf(agora.InvalidRequest, "Last-Event-ID, or last_seq, is not a number below 2^53")
	}
	return h, nil
}

// eventSink writes envelopes as events.
type eventSink struct {
	events  *web.Events
	reach   web.Reach
	session *edge.Session
	probes  []probe // whose sign of life is missing
	asked   bool    // one of them is new: what has just been written is not acknowledged yet
}

// probe is a sign of life that is waited for: that the peer's system has acknowledged more than it had.
type probe struct {
	data  uint64
	acked uint64
	known bool // whether the system tells: else that the socket has taken it is all that can be told
	until time.Time
}

const (
	probeEvery = 10 * time.Millisecond
	probeFor   = 5 * time.Second
)

func (s *eventSink) begin(dst []byte, seq uint64) []byte { return web.BeginEvent(dst, seq) }

func (s *eventSink) end(dst []byte, at int, _ uint64) []byte { return web.EndEvent(dst, at) }

func (s *eventSink) reconnect(dst []byte, after time.Duration) []byte {
	dst = append(dst, "event: reconnect\ndata: {\"after_ms\":"...)
	return append(strconv.AppendInt(dst, after.Milliseconds(), 10), "}\n\n"...)
}

func (s *eventSink) probe(dst []byte, data uint64) ([]byte, error) {
	acked, known := s.reach.Acked()
	s.probes, s.asked = append(s.probes, probe{data, acked, known, time.Now().Add(probeFor)}), true
	return append(dst, ":\n\n"...), nil
}

func (s *eventSink) write(b []byte) error { return s.events.SendLines(b) }

// look tells the session of the signs of life that have come.
func (s *eventSink) look() time.Duration {
	if len(s.probes) == 0 {
		return 0
	}
	if s.asked {
		s.asked = false
		return probeEvery
	}
	acked, known := s.reach.Acked()
	now, left := time.Now(), s.probes[:0]
	for _, p := range s.probes {
		switch {
		case !p.known || known && acked > p.acked:
			s.session.Pong(p.data)
		case now.Before(p.until):
			left = append(left, p)
		}
	}
	if len(left) == 0 {
		s.probes = nil // a quiet downlink keeps nothing
		return 0
	}
	s.probes = left
	return probeEvery
}
