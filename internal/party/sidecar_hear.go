package party

import (
	"bufio"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

// serveCard shows the card.
func (p *sidecarParty) serveCard(w http.ResponseWriter, _ *http.Request) {
	b, err := json.Marshal(map[string]any{"name": p.seat.ID, "skills": skillNames(p.seat.Skills)})
	if err != nil {
		p.seat.T.Error(err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(b) // the sidecar is gone, else
}

// serveIn hears what is posted. The answer to a request is that of the party.
func (p *sidecarParty) serveIn(w http.ResponseWriter, r *http.Request) {
	h := r.Header
	from, err := url.PathUnescape(h.Get("Agora-From"))
	if err != nil {
		p.seat.T.Errorf("posted from %q: %v", h.Get("Agora-From"), err)
	}
	said := Word{Peer: agora.AgentID(from), Request: h.Get("Agora-Request-Id"), Space: h.Get("Agora-Space"), Stream: h.Get("Agora-Stream")}
	switch h.Get("Agora-Kind") {
	case "roster":
		return
	case "event":
		said.Kind = agora.Event
	case "reply":
		if said.Kind = agora.Reply; h.Get("Content-Type") == "application/x-ndjson" {
			p.hearStream(said, r.Body)
			return
		}
	}
	if said.Body, err = io.ReadAll(r.Body); err != nil {
		return // it comes again
	}
	if said.Kind != agora.Request || said.Request == "" {
		p.Put(said)
		return
	}
	a := &sidecarAnswer{pieces: make(chan sidecarPiece), gone: r.Context().Done()}
	key := sidecarAsk{said.Peer, said.Request}
	p.mu.Lock()
	p.open[key] = a
	p.mu.Unlock()
	p.Put(said)
	if !a.write(w) {
		p.Put(givenUp(said, h.Get("Agora-Deadline-Ms")))
	}
}

// givenUp is what is heard of a request whose answer nobody waits for any more: because it had a deadline, else because
// it was cancelled.
func givenUp(q Word, deadline string) Word {
	w := Word{Kind: agora.Control, Part: agora.Cancel, Peer: q.Peer, Request: q.Request, Stream: q.Request}
	if deadline != "" {
		w.Kind, w.Part, w.Code, w.Stream = agora.Request, agora.Abort, agora.Timeout, ""
	}
	return w
}

// hearStream hears a streamed reply. The dialect has no word for its beginning: where that says something it is a
// chunk.
func (p *sidecarParty) hearStream(w Word, body io.Reader) {
	lines := bufio.NewScanner(body)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		var line struct {
			Payload, End json.RawMessage
			Text         *string
		}
		if err := json.Unmarshal(lines.Bytes(), &line); err != nil {
			return // it breaks off in the midst of a line
		}
		switch {
		case line.Text != nil:
			w.Part, w.Body = agora.Chunk, []byte(*line.Text)
		case line.End != nil:
			w.Part, w.Body = agora.End, nil
		case (Word{Body: line.Payload}).said() == "":
			continue
		default:
			w.Part, w.Body = agora.Chunk, line.Payload
		}
		if p.Put(w); w.Part == agora.End {
			return
		}
	}
	w.Part, w.Body, w.Code = agora.Abort, nil, agora.StreamAborted // of which the dialect says no more
	p.Put(w)
}

// write writes the pieces of an answer as they come; false where nobody waits for it any more.
func (a *sidecarAnswer) write(w http.ResponseWriter) bool {
	flush := http.NewResponseController(w).Flush
	for {
		select {
		case piece, more := <-a.pieces:
			if !more {
				return true
			}
			w.Header().Set("Content-Type", "text/plain")
			if piece.whole {
				w.Header().Set("Content-Type", "application/json")
			}
			_, _ = w.Write(piece.body) // the sidecar is gone, else
			if !piece.whole {
				_ = flush()
			}
			close(piece.written)
		case <-a.gone:
			return false
		}
	}
}

// answers says a part of a reply: to a request that waits for its answer by that, else, as of one that comes later, by
// the API.
func (p *sidecarParty) answers(ctx context.Context, w Word) error {
	key := sidecarAsk{w.Peer, w.Request}
	p.mu.Lock()
	a := p.open[key]
	if w.Part == agora.Whole || w.Part == agora.End {
		delete(p.open, key)
	}
	p.mu.Unlock()
	if a == nil {
		body := append([]byte(`{"to":`), agoratest.Quote(string(w.Peer))...)
		body = append(append(body, `,"request_id":`...), agoratest.Quote(w.Request)...)
		return p.post(ctx, "/reply", append(append(append(body, `,"payload":`...), w.Body...), '}'))
	}
	if w.Part == agora.Whole || w.Part == agora.End {
		defer close(a.pieces)
	}
	if w.Part == agora.End {
		return nil
	}
	piece := sidecarPiece{w.Body, w.Part == agora.Whole, make(chan struct{})}
	select {
	case a.pieces <- piece:
		<-piece.written
		return nil
	case <-a.gone:
		return agora.Errorf(agora.StreamNotFound, "nobody waits for the answer")
	case <-ctx.Done():
		return ctx.Err()
	}
}
