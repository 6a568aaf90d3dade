package party

import (
	"cmp"
	"context"
	"encoding/json"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/wire"
)

// coreLink is one connection of the party. It is its session's edge.Conn.
type coreLink struct {
	p       *coreParty
	session *edge.Session
	wake    chan struct{}
	life    context.Context
	end     context.CancelFunc

	mu      sync.Mutex // guards the fields below
	goodbye bool
	ping    uint64 // to be answered; 0 for none
}

// Wake is called by the session when Pull has something.
func (l *coreLink) Wake() {
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// Close is called by the node.
func (l *coreLink) Close(edge.Reason) {
	l.end()
}

// Notify is called by the session.
func (l *coreLink) Notify(n edge.Notice) {
	switch n.Kind {
	case edge.NoticePing:
		l.mu.Lock()
		l.ping = n.Data
		l.mu.Unlock()
		l.Wake()
	case edge.NoticeFault:
		l.put(Word{Part: agora.Abort, Peer: n.To.Agent, Stream: n.Stream, Request: n.RequestID, Code: n.Err.Code})
	}
}

// serve is the connection's goroutine, until it has ended.
func (l *coreLink) serve() {
	for l.life.Err() == nil {
		select {
		case <-l.wake:
			l.pong()
			for !l.stalled() && l.pull() {
			}
		case <-l.life.Done():
		}
	}
	l.lost()
	l.mu.Lock()
	goodbye := l.goodbye
	l.mu.Unlock()
	l.session.Closed(goodbye)
}

func (l *coreLink) pong() {
	l.mu.Lock()
	data := l.ping
	l.ping = 0
	l.mu.Unlock()
	if data > 0 {
		l.session.Pong(data)
	}
}

func (l *coreLink) stalled() bool {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	return l.p.stalled
}

// pull hears what the session has, and reports whether there may be more.
func (l *coreLink) pull() bool {
	ds, err := l.session.Pull(l.life, 64<<10, func() {})
	if err != nil {
		again := time.AfterFunc(50*time.Millisecond, l.Wake)
		context.AfterFunc(l.life, func() { again.Stop() })
		return false
	}
	for i := range ds {
		if !l.heard(&ds[i]) {
			return false // what was pulled is not written
		}
	}
	l.session.Written()
	return len(ds) > 0
}

// heard hears a delivery; false where the connection is gone.
func (l *coreLink) heard(d *edge.Delivery) bool {
	m := d.Message
	if d.Event != nil {
		m = &d.Event.Message
	}
	w, tell := wordOf(m)
	w.Deadline = time.Duration(d.DeadlineMS) * time.Millisecond
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	switch {
	case l.p.link != l:
		return false
	case d.Event != nil:
		l.p.spaces[m.To.Space] = m.Seq
	default:
		l.p.last = m.Seq
	}
	if tell {
		l.p.Put(w)
	}
	return true
}

// put hears a word beside deliveries, unless the connection is gone.
func (l *coreLink) put(w Word) {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.link == l {
		l.p.Put(w)
	}
}

// lost takes the connection from the party.
func (l *coreLink) lost() {
	l.p.mu.Lock()
	defer l.p.mu.Unlock()
	if l.p.link == l {
		l.p.link = nil
		l.p.Shut()
	}
	l.end()
}

// wordOf says a stored message in words of the suite; false for one that says nothing to an agent.
func wordOf(m *agora.Message) (Word, bool) {
	w := Word{Kind: m.Kind, Part: m.Part, Peer: m.From, Stream: m.Stream, Body: m.Body}
	switch {
	case m.Kind == agora.Event:
		w.Space = m.To.Space
	case m.Kind == agora.Receipt || m.Kind == agora.Roster:
		return w, false
	case m.Part == agora.Abort:
		a := m.AbortBody()
		w.Code, w.Request, w.Body = a.Code, a.Request, nil
	case m.Part == agora.Chunk && m.Media == "":
		var text string
		_ = json.Unmarshal(wire.AppendChunk(nil, m), &text) // it was checked when it was stored
		w.Body = []byte(text)
	case m.Part <= agora.Start:
		w.Request = cmp.Or(m.Meta.Request, nameIn(m.Body))
	}
	return w, true
}
