package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/origin"
)

const (
	maxBody    = 1 << 20 // bytes of the body of a request of the agent
	headerTime = 10 * time.Second
	storeTime  = 30 * time.Second // until the cluster has what the agent sends
)

// api is what the agent is served.
type api struct {
	log   *slog.Logger
	up    *upstream
	state *state
	stats *stats
	gate  adminGate

	member atomic.Pointer[member] // nil until the agent is one
}

// member is an agent that has entered the cluster.
type member struct {
	client *client.Client
	spaces *spaces
	peer   *peerSide
}

// serve serves the API for the agent until ctx ends.
func (a *api) serve(ctx context.Context, l net.Listener) {
	server := &http.Server{
		Handler: withoutPages(l, a.handler()), ReadHeaderTimeout: headerTime, ReadTimeout: storeTime, IdleTimeout: 2 * time.Minute, MaxHeaderBytes: maxHeader,
		ErrorLog: slog.NewLogLogger(a.log.Handler(), slog.LevelDebug),
	}
	if isWide(l) && a.gate.tokenFile == "" {
		a.log.Warn("whoever reaches the API for the agent speaks as the agent", "address", l.Addr().String())
	}
	stopped := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(stopped)
		server.Close()
	})
	if err := server.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		a.log.Warn("the API for the agent has ended", "err", err)
	}
	if !stop() {
		<-stopped
	}
}

// withoutPages returns h but for web pages, which may not speak for the agent. Where the listener is of this machine
// alone, it is asked for by a name of this machine: a page's owner could let another one point here.
func withoutPages(l net.Listener, h http.Handler) http.Handler {
	at, is := l.Addr().(*net.TCPAddr)
	pages := origin.Policy{Closed: true, Loopback: is && at.IP.IsLoopback()}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := pages.Check(r); err != nil {
			status, answer := faultOf(r.Context(), err)
			writeAnswer(w, status, answer)
			return
		}
		h.ServeHTTP(w, r)
	})
}

// handler returns the API for the agent: the one who speaks for the agent passes the gate, and every other path tells
// nothing but how the sidecar is.
func (a *api) handler() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, "ok\n") })
	mux.HandleFunc("GET /readyz", a.serveReady)
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4")
		a.writeMetrics(w)
	})
	mux.HandleFunc("POST /send", a.gate.guards(a.does(a.send)))
	mux.HandleFunc("POST /reply", a.gate.guards(a.does(a.replyLater)))
	mux.HandleFunc("POST /ask", a.gate.guards(a.serveAsk))
	mux.HandleFunc("POST /spaces/{name}/join", a.gate.guards(a.does(a.joinSpace)))
	mux.HandleFunc("POST /spaces/{name}/leave", a.gate.guards(a.does(a.leaveSpace)))
	mux.HandleFunc("POST /spaces/{name}/publish", a.gate.guards(a.does(a.publish)))
	return mux
}

func (a *api) serveReady(w http.ResponseWriter, _ *http.Request) {
	switch {
	case a.state.ending.Load():
		http.Error(w, "ending", http.StatusServiceUnavailable)
	case a.member.Load() == nil || !a.state.joined.Load():
		http.Error(w, "no connection to the cluster", http.StatusServiceUnavailable)
	case !a.up.isHere():
		http.Error(w, "the agent is away", http.StatusServiceUnavailable)
	default:
		io.WriteString(w, "ok\n")
	}
}

// does returns the handler of what returns a status and an answer, nil for none.
func (a *api) does(f func(context.Context, *http.Request, []byte) (int, any, error)) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		ctx, cancel := context.WithTimeout(r.Context(), storeTime)
		defer cancel()
		status, answer := 0, any(nil)
		body, err := a.asked(w, r)
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
func (a *api) asked(w http.ResponseWriter, r *http.Request) ([]byte, error) {
	body, err := bodyOf(w, r)
	if err == nil && (a.member.Load() == nil || a.state.ending.Load()) {
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

// bodyOf returns the body of a request.
func bodyOf(w http.ResponseWriter, r *http.Request) ([]byte, error) {
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

func (a *api) send(ctx context.Context, _ *http.Request, body []byte) (int, any, error) {
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
	return http.StatusAccepted, nil, a.member.Load().client.Send(ctx, q.To, q.Payload)
}

// replyLater replies to a request that the agent has taken without an answer.
func (a *api) replyLater(ctx context.Context, _ *http.Request, body []byte) (int, any, error) {
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
	return http.StatusAccepted, nil, a.member.Load().client.Reply(ctx, q.To, q.Request, q.Payload)
}

func (a *api) joinSpace(ctx context.Context, r *http.Request, body []byte) (int, any, error) {
	var q struct {
		History int `json:"history"`
	}
	if len(body) > 0 {
		if err := json.Unmarshal(body, &q); err != nil {
			return 0, nil, agora.Errorf(agora.InvalidRequest, `the body is no {"history"}`)
		}
	}
	space, err := a.member.Load().spaces.join(ctx, r.PathValue("name"), q.History)
	if err != nil {
		return 0, nil, err
	}
	return http.StatusOK, map[string]any{"members": space.Members()}, nil
}

func (a *api) leaveSpace(ctx context.Context, r *http.Request, _ []byte) (int, any, error) {
	return http.StatusNoContent, nil, a.member.Load().spaces.leave(ctx, r.PathValue("name"))
}

func (a *api) publish(ctx context.Context, r *http.Request, body []byte) (int, any, error) {
	space, err := a.member.Load().spaces.joined(r.PathValue("name"))
	if err != nil {
		return 0, nil, err
	}
	return http.StatusAccepted, nil, space.Publish(ctx, json.RawMessage(body))
}
