package iat

import (
	"context"
	"encoding/json"
	"errors"
	"iter"
	"net/http"
	"net/url"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// downlink is what an agent is sent, from whatever edge. One goroutine runs it.
type downlink struct {
	c         *Client
	marks     marks
	onMade    func()
	trier     trier
	token     string    // with which it is taken over
	takes     bool      // the token was presented last
	made      bool      // there was a connection
	held      time.Time // since when the id is held by another connection; zero: it is not
	at        string    // address of its edge
	confirmed uint64    // position that an edge was told
}

// delivery is an envelope that was sent to the agent.
type delivery struct {
	Envelope
	seq  uint64 // 0 where it has no position
	size int
}

// movedError ends a connection because the edge has asked for that.
type movedError struct{ after time.Duration }

func (*movedError) Error() string { return "the edge asked to reconnect" }

func newDownlink(c *Client) *downlink { return &downlink{c: c, trier: trier{c: c}, onMade: func() {}} }

// run calls take for each envelope that comes, in order and once, until that returns false, ctx ends, or an edge
// refuses permanently, and returns why. While the first connection has not been made, it fails after Patience; later it
// is made again for as long as it takes.
func (d *downlink) run(ctx context.Context, take func(*delivery) bool) error {
	for {
		err := d.once(ctx, take)
		if errors.Is(err, errLeft) {
			return err
		}
		if err = d.again(ctx, err); err != nil {
			return err
		}
	}
}

// again blocks until it is time to connect again, and returns err where there is no use in that.
func (d *downlink) again(ctx context.Context, err error) error {
	if m, ok := errors.AsType[*movedError](err); ok {
		d.c.elsewhere()
		if !pause.For(ctx, m.after) {
			return context.Cause(ctx)
		}
		return nil
	}
	e, ok := errors.AsType[*Error](err)
	if ok && e.Code == agora.InvalidRequest && d.takes { // the session has another token, or is over
		d.token, d.takes = "", false
		return nil
	}
	if d.made && ctx.Err() == nil {
		d.c.cfg.Log.Info("downlink is lost", "agent", d.c.cfg.Agent, "err", err)
		d.c.cfg.OnStatus(Status{Edge: d.at, Err: err})
	}
	if ok && e.Code == agora.AgentExists && d.stillHeld() {
		err = &Error{Code: agora.Unavailable, Message: e.Message, Cause: e}
	}
	d.trier.endless = d.made
	return d.trier.again(ctx, err)
}

// stillHeld reports whether another connection that has the id may be the old one, of which its edge does not know yet
// that it broke.
func (d *downlink) stillHeld() bool {
	if d.held.IsZero() {
		d.held = time.Now()
	}
	return d.made && time.Since(d.held) < d.c.cfg.Patience
}

// connect opens the downlink at the edge whose turn it is.
func (d *downlink) connect(ctx context.Context) (*events, error) {
	q := url.Values{"agent": {d.c.cfg.Agent}}
	if d.takes = d.token != ""; d.takes { // else it would be a new process, whose half-given answers are aborted
		q.Set("resume_token", d.token)
	}
	r := httpRequest{method: http.MethodGet, path: "/a2a/events?" + q.Encode(), header: http.Header{"Accept": {"text/event-stream"}}}
	last, known := d.marks.position()
	if known {
		r.header.Set("Last-Event-ID", strconv.FormatUint(last, 10))
	}
	edge := d.c.edge()
	resp, end, err := d.c.attempt(ctx, r)
	if err != nil {
		return nil, err
	}
	d.at = edge
	d.marks.connected(last)
	d.token, d.takes, d.made, d.confirmed, d.held = resp.Header.Get("Agora-Resume-Token"), false, true, last, time.Time{}
	if seq, err := strconv.ParseUint(resp.Header.Get("Agora-Last-Seq"), 10, 64); err == nil {
		d.marks.begin(seq)
	}
	return newEvents(resp.Body, d.c.silence(), end), nil
}

// once takes what comes by one connection.
func (d *downlink) once(ctx context.Context, take func(*delivery) bool) error {
	s, err := d.connect(ctx)
	if err != nil {
		return err
	}
	defer s.close()
	d.c.cfg.OnStatus(Status{Edge: d.at})
	d.onMade()
	begun := time.Now()
	for {
		v, err := s.next()
		if time.Since(begun) > d.c.cfg.KeepAlive {
			d.trier.worked()
		}
		if err != nil {
			return broke(cmpEOF(err))
		}
		e, err := d.read(v)
		if err != nil {
			return err
		}
		if e == nil {
			continue
		}
		d.trier.worked()
		if !take(e) {
			return errLeft
		}
	}
}

// read reads an event; nil for one that says nothing, or nothing new. An error is why the edge ends the connection.
func (d *downlink) read(v event) (*delivery, error) {
	if v.name == "reconnect" {
		var p struct {
			After int64 `json:"after_ms"`
		}
		_ = json.Unmarshal(v.data, &p) // at once, where it can't be read
		return nil, &movedError{time.Duration(p.After) * time.Millisecond}
	}
	e := &delivery{size: len(v.data)}
	if v.name != "" || json.Unmarshal(v.data, &e.Envelope) != nil {
		return nil, nil
	}
	if v.id == "" {
		if f := faultOf(&e.Envelope); f != nil && e.Header.ParentID == "" {
			return nil, f
		}
		return e, nil
	}
	seq, err := strconv.ParseUint(v.id, 10, 64)
	if err != nil {
		return e, nil
	}
	if e.seq = seq; !d.marks.given(seq, e.Header.MsgID) {
		return nil, nil
	}
	return e, nil
}

// done notes that the program is done with an envelope.
func (d *downlink) done(e *delivery) {
	if e.seq > 0 {
		d.marks.done(e.seq)
	}
}

// confirmTime is how long an edge is tried to be told what the program was done with.
const confirmTime = 5 * time.Second

// confirm tells an edge what the program was done with, so that it is not given that again when it starts again.
func (d *downlink) confirm() {
	last, known := d.marks.position()
	if !known || !d.made || last == d.confirmed {
		return
	}
	ctx, cancel := context.WithTimeout(context.Background(), confirmTime)
	defer cancel()
	s, err := d.connect(ctx)
	if err != nil {
		d.c.cfg.Log.Debug("a position is not confirmed", "agent", d.c.cfg.Agent, "err", err)
		return
	}
	s.close()
}

// Events yields what the agent of the configuration is sent, in order and once, until ctx ends or an edge refuses for
// good: its last pair has that error. The agent is there for others meanwhile. An envelope is done with when the body
// of the loop has ended for it: a program that starts again is given again what it was not known to be done with,
// marked. Two loops at one time are refused with AGENT_EXISTS.
func (c *Client) Events(ctx context.Context) iter.Seq2[*Envelope, error] {
	return func(yield func(*Envelope, error) bool) {
		d := newDownlink(c)
		c.each(ctx, d, yield, d.done)
		d.confirm()
	}
}

// Peek is [Client.Events] for who only looks: nothing counts as done with.
func (c *Client) Peek(ctx context.Context) iter.Seq2[*Envelope, error] {
	return func(yield func(*Envelope, error) bool) {
		c.each(ctx, newDownlink(c), yield, func(*delivery) {})
	}
}

func (c *Client) each(ctx context.Context, d *downlink, yield func(*Envelope, error) bool, done func(*delivery)) {
	ctx, cancel := c.within(ctx)
	defer cancel()
	err := d.run(ctx, func(e *delivery) bool {
		more := yield(&e.Envelope, nil)
		done(e)
		return more
	})
	if !errors.Is(err, errLeft) {
		yield(nil, err)
	}
}
