package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

const (
	maxBody    = 1 << 20 // bytes of the body of a request of the agent
	headerTime = 10 * time.Second
	storeTime  = 30 * time.Second // until the cluster has what the agent sends
)

// serveAdmin serves the API for the agent until ctx ends.
func (s *Sidecar) serveAdmin(ctx context.Context) {
	server := &http.Server{
		Handler: s.admin(), ReadHeaderTimeout: headerTime, ReadTimeout: storeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(s.cfg.Log.Handler(), slog.LevelDebug),
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		server.Close()
	})
	if err := server.Serve(s.cfg.Admin); !errors.Is(err, http.ErrServerClosed) {
		s.cfg.Log.Warn("the API for the agent has ended", "err", err)
	}
	if !stop() {
		<-stopped
	}
}

// admin returns the API for the agent.
func (s *Sidecar) admin() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", s.serveReady)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		s.writeMetrics(w)
	})
	mux.HandleFunc("POST /send", s.does(s.send))
	mux.HandleFunc("POST /reply", s.does(s.replyLater))
	mux.HandleFunc("POST /ask", s.serveAsk)
	mux.HandleFunc("POST /spaces/{name}/join", s.does(s.joinSpace))
	mux.HandleFunc("POST /spaces/{name}/leave", s.does(s.leaveSpace))
	mux.HandleFunc("POST /spaces/{name}/publish", s.does(s.publish))
	return mux
}

func (s *Sidecar) serveReady(w http.ResponseWriter, _ *http.Request) {
	switch {
	case s.ending.Load():
		http.Error(w, "ending", http.StatusServiceUnavailable)
	case !s.entered.Load() || !s.joined.Load():
		http.Error(w, "no connection to the cluster", http.StatusServiceUnavailable)
	case !s.shown.isHere():
		http.Error(w, "the agent is away", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ok\n")
	}
}

// does returns the handler of what returns a status and an answer, nil for none.
func (s *Sidecar) does(f func(context.Context, *http.Request, []byte) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), storeTime)
		defer cancel()
		status, answer := 0, any(nil)
		body, err := s.asked(w, r)
		if err == nil {
			status, answer, err = f(ctx, r, body)
		}
		if err != nil {
			status, answer = faultOf(ctx, err)
		}
		writeAnswer(w, status, answer)
	}
}

// asked returns the body of a request, where the agent is a member.
func (s *Sidecar) asked(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := bodyOf(w, r)
	if err == nil && (!s.entered.Load() || s.ending.Load()) {
		err = agora.Errorf(agora.Unavailable, "the agent is no member of the cluster now")
	}
	return body, err
}

// faultOf returns the status and the answer that an error is.
func faultOf(ctx context.Context, err error) (int, any) {
	e := asError(ctx, err)
	return e.Code.Status().HTTP, map[string]any{"error": map[string]any{"code": e.Code, "message": e.Message}}
}

// writeAnswer writes an answer, nil for none.
func writeAnswer(w http.ResponseWriter, status int, answer any) {
	if answer == nil {
		w.WriteHeader(status)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(answer) // the agent is gone
}

// asError returns an error as the agent is told it.
func asError(ctx context.Context, err error) *agora.Error {
	switch {
	case errors.Is(err, client.ErrUnknown):
		return agora.Errorf(agora.Unavailable, "%v", client.ErrUnknown)
	case errors.Is(err, client.ErrCancelled):
		return agora.Errorf(agora.StreamAborted, "the agent that was asked gave up before its answer was whole")
	case errors.Is(err, context.DeadlineExceeded) && ctx.Err() != nil:
		return agora.Errorf(agora.Timeout, "it was not done in time")
	}
	return agora.AsError(err)
}

// bodyOf returns the body of a request, which no web page has made.
func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	if r.Header.Get("Origin") != "" {
		return nil, agora.Errorf(agora.Forbidden, "web pages may not speak for the agent")
	}
	b, err := io.ReadAll(http.MaxBytesReader(w, r.Body, maxBody))
	if _, large := errors.AsType[*http.MaxBytesError](err); large {
		return nil, agora.Errorf(agora.MessageTooLarge, "the body is larger than %d bytes", maxBody)
	}
	if err != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "the body breaks off")
	}
	if len(b) > 0 && !json.Valid(b) {
		return nil, agora.Errorf(agora.InvalidRequest, "the body is no JSON")
	}
	return b, nil
}

func (s *Sidecar) send(ctx context.Context, _ *http.Request, body []byte) (int, any, error) {
	var q struct {
		To      string          `json:"to"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(body, &q); err != nil {
		return 0, nil, agora.Errorf(agora.InvalidRequest, `the body is no {"to","payload"}`)
	}
	if _, err := agora.ParseAgentID(q.To); err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, nil, s.client.Send(ctx, q.To, q.Payload)
}

// replyLater replies to a request that the agent has taken without an answer.
func (s *Sidecar) replyLater(ctx context.Context, _ *http.Request, body []byte) (int, any, error) {
	var q struct {
		To      string          `json:"to"`
		Request string          `json:"request_id"`
		Payload json.RawMessage `json:"payload"`
	}
	if err := json.Unmarshal(body, &q); err != nil || q.Request == "" {
		return 0, nil, agora.Errorf(agora.InvalidRequest, `the body is no {"to","request_id","payload"}`)
	}
	if _, err := agora.ParseAgentID(q.To); err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, nil, s.client.Reply(ctx, q.To, q.Request, q.Payload)
}

func (s *Sidecar) joinSpace(ctx context.Context, r *http.Request, body []byte) (int, any, error) {
	var q struct {
		History int `json:"history"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &q); err != nil {
			return 0, nil, agora.Errorf(agora.InvalidRequest, `the body is no {"history"}`)
		}
	}
	space, err := s.spaces.join(ctx, r.PathValue("name"), q.History)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"members": space.Members()}, nil
}

func (s *Sidecar) leaveSpace(ctx context.Context, r *http.Request, _ []byte) (int, any, error) {
	return http.StatusNoContent, nil, s.spaces.leave(ctx, r.PathValue("name"))
}

func (s *Sidecar) publish(ctx context.Context, r *http.Request, body []byte) (int, any, error) {
	space, err := s.spaces.joined(r.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, nil, space.Publish(ctx, json.RawMessage(body))
}
