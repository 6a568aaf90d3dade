package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// serveAsk asks another agent, and answers with its reply: as JSON where that is whole, else line by line as it comes.
func (a *api) serveAsk(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	m, ctx, err := a.askAgent(ctx, w, r)
	if err != nil {
		status, answer := faultOf(ctx, err)
		writeAnswer(w, status, answer)
		return
	}
	defer m.Close()
	if m.Media != "" {
		w.Header().Set(headerMedia, oneLine(m.Media))
	}
	if m.Stream {
		writeStream(ctx, w, m)
		return
	}
	payload := m.Payload
	if payload == nil {
		payload = json.RawMessage("null")
	}
	w.Header().Set("Content-Type", "application/json")
	_, _ = w.Write(payload) // the agent is gone
}

// askAgent asks whom a request names, and returns the reply, and the context that bounds it.
func (a *api) askAgent(ctx context.Context, w http.ResponseWriter, r *http.Request) (*client.Message, context.Context, error) {
	body, err := a.asked(w, r)
	if err != nil {
		return nil, ctx, err
	}
	var q struct {
		To       string          `json:"to"`
		Payload  json.RawMessage `json:"payload"`
		Deadline int64           `json:"deadline_ms"`
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Deadline < 0 || q.Deadline > maxAsk.Milliseconds() {
		return nil, ctx, agora.Errorf(agora.InvalidRequest, `the body is no {"to","payload","deadline_ms"}`)
	}
	if _, err := agora.ParseAgentID(q.To); err != nil {
		return nil, ctx, err
	}
	within := maxAsk
	if q.Deadline > 0 {
		within = time.Duration(q.Deadline) * time.Millisecond
	}
	_ = http.NewResponseController(w).SetReadDeadline(time.Time{}) // it is read, and has its own deadline
	bounded, cancel := context.WithTimeout(ctx, within)
	context.AfterFunc(ctx, cancel)
	m, err := a.member.Load().client.Request(bounded, q.To, q.Payload)
	return m, bounded, err
}

// maxAsk is how long an answer may take until it is whole.
const maxAsk = 24 * time.Hour

// writeStream writes a streamed reply: a line of JSON for what it begins with, for each piece of text, and for its end,
// or for the error that it ends with.
func writeStream(ctx context.Context, w http.ResponseWriter, m *client.Message) {
	w.Header().Set("Content-Type", "application/x-ndjson")
	flush := http.NewResponseController(w).Flush
	line := appendLine(nil, "payload", m.Payload)
	for more := true; ; {
		if _, err := w.Write(line); err != nil || flush() != nil || !more {
			return // the agent is gone, or has it all
		}
		text, err := m.Next(ctx)
		switch {
		case err == nil:
			line = appendLine(line[:0], "text", quoted(text))
		case errors.Is(err, io.EOF):
			more, line = false, appendLine(line[:0], "end", m.EndPayload())
		default:
			_, fault := faultOf(ctx, err)
			line, _ = json.Marshal(fault) // of strings it never fails
			more, line = false, append(line, '\n')
		}
	}
}
