package party

import (
	"cmp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// pump hears what comes by a connection until that is gone.
func (p *wsParty) pump(c *agoratest.Client) {
	for {
		f, ok := c.Next(await.Long)
		switch {
		case ok:
			p.came(f)
		case c.Gone() != nil:
			p.mu.Lock()
			p.answer(wsAnswer{err: ErrGone})
			p.mu.Unlock()
			p.Shut()
			return
		}
	}
}

// answer answers what was said or asked last. mu is held.
func (p *wsParty) answer(a wsAnswer) {
	if p.pending != nil {
		p.pending.answer <- a
		p.pending = nil
	}
}

// came takes a frame.
func (p *wsParty) came(f agoratest.Frame) {
	p.seat.within(len(f))
	p.mu.Lock()
	defer p.mu.Unlock()
	if at := f.Seq(); at > 0 && f.Type() != "receipt" {
		if space := f.Text("space"); space != "" {
			p.spaces[space] = at
		} else {
			p.last = at
		}
	}
	ask := p.pending
	switch f.Type() {
	case "receipt":
		if ask != nil && wsPlace(f) == ask.place && f.Uint("n") >= ask.n {
			p.answer(wsAnswer{used: true})
		}
	case "agents.found", "space.joined":
		if ask != nil && f.Text("id") == ask.id {
			p.answer(wsAnswer{frame: f})
		}
	case "error":
		p.failed(f)
	default:
		if w, ok := wsWord(f); ok {
			if w.Part == agora.Cancel {
				p.ended(w)
			}
			p.Put(w)
		}
	}
}

// refused reports whether an error is the answer: one that names nothing is, as a frame that can't be read is refused
// so.
func (a *wsAsked) refused(f agoratest.Frame) bool {
	switch n := f.Uint("n"); {
	case f.Has("from"):
		return false
	case a.id != "":
		return f.Text("request_id") == a.id
	case n > 0:
		return n == a.n && wsPlace(f) == a.place
	}
	return wsPlace(f) == "" && !f.Has("request_id")
}

// wsPlace returns where what a frame speaks of went: as [Word.place].
func wsPlace(f agoratest.Frame) string {
	if f.Has("space") {
		return "#" + f.Text("space")
	}
	return f.Text("to")
}

// failed takes an error: the answer to what was said, or word of a stream or request that was given up. mu is held.
func (p *wsParty) failed(f agoratest.Frame) {
	code, n := agora.Code(f.Text("code")), f.Uint("n")
	if ask := p.pending; ask != nil && ask.refused(f) {
		if code != agora.Unavailable && ask.part != agora.Whole {
			p.over[ask.stream] = true
		}
		p.answer(wsAnswer{err: frameError(f), used: n > 0 && code != agora.Unavailable})
		return
	}
	w := Word{Part: agora.Abort, Peer: agora.AgentID(cmp.Or(f.Text("from"), f.Text("to"))), Stream: f.Text("stream_id"), Request: f.Text("request_id"), Code: code}
	p.ended(w)
	p.Put(w)
}

// ended notes that a stream is over: what is still said of it is dropped without an answer. mu is held.
func (p *wsParty) ended(w Word) {
	st := wsStream{string(w.Peer), w.Stream}
	if w.Stream == "" {
		return
	}
	p.over[st] = true
	if ask := p.pending; ask != nil && ask.stream == st && (ask.part == agora.Chunk || ask.part == agora.End) {
		p.answer(wsAnswer{used: true})
	}
}
