package serve

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	ops "github.com/agora-relay/agora/edge/operator"
)

// operatorTime bounds one request of an operator's.
const operatorTime = 30 * time.Second

// operatorHandler answers what operators ask about the cluster, and do to it. What is said goes by id in the query, so
// that an id may hold anything. Every answer is JSON; an error is {"error":{"code","message"}} with the code's HTTP
// status.
func (e *edgeServer) operatorHandler() http.Handler {
	mux := http.NewServeMux()
	cluster := ops.New(e.node)
	answer := func(pattern string, f func(ctx context.Context, q operatorQuery) (any, error)) {
		mux.HandleFunc(pattern, func(w http.ResponseWriter, r *http.Request) { operate(w, r, f) })
	}
	answer("GET /v1/agent", func(ctx context.Context, q operatorQuery) (any, error) {
		return cluster.InspectAgent(ctx, q.tenant, q.agent())
	})
	answer("GET /v1/space", func(ctx context.Context, q operatorQuery) (any, error) {
		return cluster.InspectSpace(ctx, q.tenant, q.id)
	})
	answer("GET /v1/edges", func(ctx context.Context, q operatorQuery) (any, error) {
		edges, err := cluster.InspectEdges(ctx, q.id)
		if err == nil && q.id != "" && len(edges) == 0 {
			err = agora.Errorf(agora.AgentNotFound, "no edge %q is known", q.id)
		}
		return map[string]any{"edges": edges, "asked": e.name}, err
	})
	answer("GET /v1/why", func(ctx context.Context, q operatorQuery) (any, error) {
		return cluster.Why(ctx, ops.WhyQuery{ID: q.id, Tenant: q.tenant, To: agora.AgentID(q.to), Space: q.space, From: agora.AgentID(q.from)})
	})
	answer("POST /v1/agent/kick", func(ctx context.Context, q operatorQuery) (any, error) {
		return map[string]any{"agent": q.id, "kicked": true}, cluster.Kick(ctx, q.tenant, q.agent())
	})
	answer("POST /v1/agent/purge", func(ctx context.Context, q operatorQuery) (any, error) {
		unread, err := cluster.Purge(ctx, q.tenant, q.agent())
		return map[string]any{"agent": q.id, "unread_records": unread}, err
	})
	rebalance := func(planned bool) func(context.Context, operatorQuery) (any, error) {
		return func(ctx context.Context, q operatorQuery) (any, error) {
			return cluster.Rebalance(ctx, q.rate, planned)
		}
	}
	answer("GET /v1/rebalance", rebalance(true))
	answer("POST /v1/rebalance", rebalance(false))
	answer("GET /v1/p2p", func(ctx context.Context, _ operatorQuery) (any, error) {
		if e.doors.p2p == nil {
			return nil, agora.Errorf(agora.NotFound, "this edge has no p2p-addr")
		}
		return e.doors.p2p.Edges(ctx), nil
	})
	e.answerLinks(answer)
	return mux
}

// operatorQuery is what a request says.
type operatorQuery struct {
	id, tenant, to, space, from string
	rate                        int // agents a second; operatorRate if it is not given
}

// operatorRate is how many agents a second edges tell to reconnect that are to have fewer.
const operatorRate = 100

func (q operatorQuery) agent() agora.AgentID { return agora.AgentID(q.id) }

func operate(w http.ResponseWriter, r *http.Request, f func(context.Context, operatorQuery) (any, error)) {
	ctx, cancel := context.WithTimeout(r.Context(), operatorTime)
	defer cancel()
	v := r.URL.Query()
	q := operatorQuery{id: v.Get("id"), tenant: v.Get("tenant"), to: v.Get("to"), space: v.Get("space"), from: v.Get("from")}
	if q.tenant == "" {
		q.tenant = agora.DefaultTenant
	}
	var err error
	if q.rate, err = strconv.Atoi(cmp.Or(v.Get("rate"), strconv.Itoa(operatorRate))); err != nil {
		refuseOperator(w, agora.Errorf(agora.InvalidRequest, "rate must be a number"))
		return
	}
	for _, id := range []string{q.to, q.from} {
		if _, err := agora.ParseStoredID(id); id != "" && err != nil {
			refuseOperator(w, err)
			return
		}
	}
	answer, err := f(ctx, q)
	if err != nil {
		refuseOperator(w, err)
		return
	}
	w.Header().Set("Content-Type", "application/json")
	out := json.NewEncoder(w)
	out.SetEscapeHTML(false)
	_ = out.Encode(answer) // who asked has gone
}

// refuseOperator answers with an error; its cause is not told.
func refuseOperator(w http.ResponseWriter, err error) {
	e := agora.AsError(err)
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(e.Code.Status().HTTP)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": string(e.Code), "message": e.Message}})
}

// profiles serves /debug/pprof, but for the command line: there may be a secret in it.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}
