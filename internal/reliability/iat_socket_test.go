package reliability

import (
	"context"
	"encoding/json"
	"net/url"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
)

// iatSocket is an agent at /a2a/ws, which goes to another edge where its own is gone. Its methods are for one
// goroutine.
type iatSocket struct {
	*iatEdges
	id    string
	at    int // the edge whose turn it is
	token string
	conn  *agoratest.Client // nil while there is none
}

// connect returns whether there is a connection.
func (s *iatSocket) connect() bool {
	if s.conn != nil {
		return true
	}
	q := url.Values{"agent": {s.id}, "receipts": {"stored"}}
	if s.token != "" {
		q.Set("resume_token", s.token)
	}
	c, resp, err := agoratest.TryConnect(s.t, agoratest.Direct{}, "ws://"+s.iatEdges.at[s.at%len(s.iatEdges.at)]+"/a2a/ws", q.Encode(), nil)
	if err != nil {
		return false
	}
	s.conn, s.token = c, resp.Header.Get("Agora-Resume-Token")
	return true
}

func (s *iatSocket) drop() {
	if s.conn != nil {
		s.conn.Drop()
	}
	s.conn = nil
}

// say says an envelope until it is stored or refused permanently, and returns the code of that.
func (s *iatSocket) say(ctx context.Context, text string) agora.Code {
	for ctx.Err() == nil {
		code := agora.Unavailable
		if s.connect() {
			code = s.try(ctx, text)
		}
		if code != agora.Unavailable {
			return code
		}
		s.drop()
		s.at++
		<-time.After(retryAfter)
	}
	return agora.Unavailable
}

// try says an envelope on the connection. Its code is UNAVAILABLE where that breaks, or asks to come back.
func (s *iatSocket) try(ctx context.Context, text string) agora.Code {
	var said iatEnvelope
	if err := json.Unmarshal([]byte(text), &said); err != nil {
		s.t.Error(err)
	}
	if s.conn.Try(text) != nil {
		return agora.Unavailable
	}
	for begun := time.Now(); ; {
		f, ok := s.conn.Next(100 * time.Millisecond)
		if !ok && s.conn.Gone() == nil && ctx.Err() == nil && time.Since(begun) < silence {
			continue
		}
		var e iatEnvelope
		if !ok || json.Unmarshal([]byte(f), &e) != nil || e.Payload.Action == "reconnect" {
			return agora.Unavailable
		}
		if e.Header.Parent == said.Header.ID && (e.Payload.Action == "receipt" || e.Payload.Error.Code != "") {
			return e.Payload.Error.Code
		}
	}
}
