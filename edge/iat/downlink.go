package iat

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// Headers of the answer to who opens a downlink.
const (
	tokenHeader = "Agora-Resume-Token" // with which the agent takes its own downlink over: ?resume_token=
	seqHeader   = "Agora-Last-Seq"     // position after which delivery continues
)

// events is the downlink of an agent: what it is sent, as events whose ids are positions. It waits on a small stack, as
// most downlinks are quiet for most of their time: what goes deep is done apart, by the door's writers.
func (d *Door) events(x *web.Exchange) error {
	if x.Request.Method == http.MethodHead {
		return d.headEvents(x)
	}
	var l *link
	var err error
	web.Apart(func() { l, err = d.openEvents(x) })
	if err != nil {
		return err
	}
	d.stats.Downlinks.Add(1)
	defer d.stats.Downlinks.Add(-1)
	stop := context.AfterFunc(x.Context(), l.giveUp)
	defer stop()
	l.out.Wait()
	return endEvents(x, l.out.Session.Load(), l.reason())
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
func (d *Door) openEvents(x *web.Exchange) (*link, error) {
	h, err := d.hello(x)
	if err != nil {
		return nil, err
	}
	h.Proof = edge.ByReturn
	line := &eventLine{reach: x.Reach()}
	l := d.newLink(line, &h)
	line.link = l
	s, w, err := x.Actor.Open(x.Context(), h, l)
	if err != nil {
		return nil, err
	}
	x.Header().Set(tokenHeader, w.ResumeToken)
	x.Header().Set(seqHeader, strconv.FormatUint(w.LastSeq, 10))
	if line.events, err = x.EventsEvery(d.cfg.KeepAlive); err == nil {
		err = line.events.SendLines([]byte(retryLine))
	}
	if err != nil {
		closeEvents(s, edge.Lost)
		return nil, err
	}
	l.start(s)
	return l, nil
}

// retryLine is the first thing that a downlink says: how long a browser waits before it opens the next one, in
// milliseconds.
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

// ended returns what is told last of why an edge ends a downlink, as a socket is told by its close code; nil where it
// was told already: an error, or that the agent is to come back elsewhere.
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

// eventLine has envelopes written as events.
type eventLine struct {
	events *web.Events
	reach  web.Reach
	link   *link

	mu     sync.Mutex // guards the fields below
	probes []probe    // whose sign of life is missing
	armed  bool       // look is to be called
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

func (e *eventLine) begin(dst []byte, seq uint64) []byte { return web.BeginEvent(dst, seq) }

func (e *eventLine) end(dst []byte, at int, _ uint64) []byte { return web.EndEvent(dst, at) }

func (e *eventLine) reconnect(dst []byte, after time.Duration) []byte {
	dst = append(dst, "event: reconnect\ndata: {\"after_ms\":"...)
	return append(strconv.AppendInt(dst, after.Milliseconds(), 10), "}\n\n"...)
}

func (e *eventLine) probe(dst []byte, data uint64) []byte {
	acked, known := e.reach.Acked()
	e.mu.Lock()
	defer e.mu.Unlock()
	e.probes = append(e.probes, probe{data, acked, known, time.Now().Add(probeFor)})
	return append(dst, ":\n\n"...)
}

// last appends nothing: the handler's error is the last event.
func (e *eventLine) last(dst []byte, _ edge.Reason) []byte { return dst }

func (e *eventLine) write(b []byte, w *deliver.Writer) (int, error) {
	w.Waits()
	if err := e.events.SendLines(b); err != nil {
		return 0, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if len(e.probes) > 0 {
		e.arm()
	}
	return len(b), nil
}

// arm has look be called in a moment. mu is held.
func (e *eventLine) arm() {
	if !e.armed {
		e.armed = true
		time.AfterFunc(probeEvery, e.look)
	}
}

// look tells the session of the signs of life that have come.
func (e *eventLine) look() {
	acked, known := e.reach.Acked()
	s, over := e.link.out.Session.Load(), e.link.out.Closing()
	for _, data := range e.returned(acked, known, over) {
		s.Pong(data)
	}
}

// returned returns the signs of life that have come, and has look be called again where some are missing and the
// downlink is not over.
func (e *eventLine) returned(acked uint64, known, over bool) (data []uint64) {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.armed = false
	now, left := time.Now(), e.probes[:0]
	for _, p := range e.probes {
		switch {
		case !p.known || known && acked > p.acked:
			data = append(data, p.data)
		case now.Before(p.until):
			left = append(left, p)
		}
	}
	if e.probes = left; len(left) == 0 || over {
		e.probes = nil // a quiet downlink keeps nothing
		return data
	}
	e.arm()
	return data
}

// cut does nothing: the writing ends with the request, or when the peer has taken nothing for too long.
func (e *eventLine) cut() {}
