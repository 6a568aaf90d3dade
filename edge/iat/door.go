// Package iat is the door for the IAT dialect: envelopes over HTTP/2 and HTTP/1.1, by POST, by a downlink of server-sent events, and by
// WebSocket. It turns envelopes into the verbs of an actor or a session, and what these have to tell into envelopes. No rule of the
// relay lives here.
package iat

import (
	"cmp"
	"crypto/rand"
	"log/slog"
	"net/http"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/approval"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/iat"
)

// Config sets up a Door. Approvals and Tools are required.
type Config struct {
	KeepAlive time.Duration       // iat.keep-alive: between two comments on a downlink; 15s
	MaxWait   time.Duration       // iat.max-wait: how long a POST waits for its answer at most; 10m
	Frame     int                 // limits.frame: bytes of an envelope; 1 MiB
	MaxErrors int                 // errors in 10 s beyond which a socket is closed; 100
	Limits    iat.Limits          // of decoding
	Approvals *approval.Approvals // used, not owned
	Tools     *tools.Guard        // checks calls of tools; used, not owned
	Log       *slog.Logger        // discards if nil
}

func (c Config) withDefaults() Config {
	c.KeepAlive = cmp.Or(c.KeepAlive, 15*time.Second)
	c.MaxWait = cmp.Or(c.MaxWait, 10*time.Minute)
	c.Frame = cmp.Or(c.Frame, 1<<20)
	c.MaxErrors = cmp.Or(c.MaxErrors, 100)
	c.Log = cmp.Or(c.Log, slog.New(slog.DiscardHandler))
	return c
}

// Door is the IAT door of one edge. Its methods may be called at the same time.
type Door struct {
	cfg   Config
	node  *edge.Node
	kit   *web.Kit
	now   func() time.Time // of the cluster
	stats *Stats
	work  sync.WaitGroup // writers

	writers deliver.Writers
}

// New returns a door of a node, whose requests a kit lets in. Its requests end with the kit.
func New(n *edge.Node, k *web.Kit, cfg Config) *Door {
	d := &Door{cfg: cfg.withDefaults(), node: n, kit: k, now: n.Config().Broker.Now, stats: newStats()}
	d.writers.Answers, d.writers.Linger, d.writers.Work, d.writers.Log = maxAnswers, writeTime, &d.work, d.cfg.Log
	d.writers.Init()
	return d
}

// maxAnswers is how many bytes may wait for an agent, beside deliveries, before its socket is read no further.
const maxAnswers = 1 << 20

// Stats returns the door's counters. They go on counting.
func (d *Door) Stats() *Stats { return d.stats }

// Mount adds the door's paths to a mux:
//
//	POST /a2a                  says an envelope; a request is answered by its response, or by events
//	GET /a2a/events            the downlink of ?agent=: what it is sent, as events
//	GET /a2a/ws                the same both ways, by WebSocket
//	GET /a2a/manifest          what the cluster speaks; with ?agent= what an agent has registered
//	GET /a2a/tools             the tools of all agents; ?name=, ?agent=, ?q= those that fit
//	GET /a2a/approvals         what waits for a decision, or was decided; events of each change where the request accepts those
//	GET /a2a/approvals/{id}    one of them
//	POST /a2a/approvals/{id}   decides it
func (d *Door) Mount(mux *http.ServeMux) {
	a := &approvals{d.cfg.Approvals, d.cfg.KeepAlive}
	for path, p := range map[string]web.Path{
		"/a2a":                {Methods: web.Methods{http.MethodPost: d.post}, Head: head{d}},
		"/a2a/events":         {Methods: web.Methods{http.MethodGet: d.events}, Token: tokenInURL, Lasts: true},
		"/a2a/ws":             {Methods: web.Methods{http.MethodGet: d.socket}, Token: tokenInURL, Lasts: true},
		"/a2a/manifest":       {Methods: web.Methods{http.MethodGet: d.manifest}, Reads: true, Counts: true},
		"/a2a/tools":          {Methods: web.Methods{http.MethodGet: listTools}, Reads: true},
		"/a2a/approvals":      {Methods: web.Methods{http.MethodGet: a.list}, Reads: true, Counts: true},
		"/a2a/approvals/{id}": {Methods: web.Methods{http.MethodGet: a.get, http.MethodPost: a.decide}, Reads: true, Counts: true},
	} {
		p.Fault = d.fault
		d.kit.HandlePath(mux, path, p)
	}
	mux.HandleFunc("/a2a/", func(w http.ResponseWriter, r *http.Request) { d.kit.Nothing(w, r, d.fault) })
}

// Wait returns when nothing of the door runs, after its kit was closed.
func (d *Door) Wait() {
	d.writers.End()
	d.work.Wait()
}

// traceOf returns the W3C traceparent of what says a trace id: that of the trace where the id is one, else the header of the request that brings it.
func traceOf(id, header string) string {
	if !isTraceID(id) {
		return header
	}
	if len(header) == len("00-")+32+len("-0000000000000000-00") && header[3:35] == id {
		return header
	}
	return "00-" + id + "-" + spanID() + "-01"
}

// about returns err as what is to be told of an envelope.
func about(e *iat.Envelope, from agora.AgentID, err error) error {
	if err == nil {
		return nil
	}
	err = inCall(e, err)
	return &refusal{iat.Fault{Err: agora.AsError(err), Path: pathOf(err), ID: e.ID, From: cmp.Or(string(from), e.From)}, err}
}

// refusal is an error that names the envelope that it is about.
type refusal struct {
	iat.Fault
	err error
}

// Unwrap returns the fault, and what has led to it.
func (r *refusal) Unwrap() []error { return []error{&r.Fault, r.err} }

// says returns the beginning of an envelope that the cluster itself says.
func (d *Door) says() iat.Said { return iat.Said{ID: "agora-" + rand.Text()[:16], Time: d.now()} }

// answer returns the cluster's response to an envelope of an agent.
func (d *Door) answer(to string, of agora.AgentID, payload []byte) []byte {
	s := d.says()
	s.Type, s.Parent, s.To, s.Payload = iat.Response, to, string(of), payload
	return s.Append(nil)
}
