package aip

import (
	"context"
	"sync"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/aip"
)

// verdict is what the end of a call says of the node that was called.
type verdict int

const (
	lives   verdict = iota // it has answered
	doubted                // it was not reached
	failed                 // it can't be called
)

// judge returns what a call has said of its node: sent is whether the status is the node's own word. Codes that speak
// of the call say nothing against the node. A toolbox is gone only with its channel.
func judge(toolbox bool, err error, sent *statusOrigin) verdict {
	code := status.Code(err)
	switch {
	case err == nil || !aip.Deregisters(code):
		return lives
	case !sent.Load() && code == codes.Unavailable:
		return doubted
	case toolbox:
		return lives
	}
	return failed
}

// judged draws from how a call of a node has ended what that says of the node: one that answers lives, and one that
// fails is deregistered. What this edge can't reach, the edge that holds it probes. It blocks until that is done, so
// that who hears of the failure finds the node gone.
func (r *registry) judged(caller context.Context, t *target, err error, sent *statusOrigin) {
	if t.link != nil || caller.Err() != nil {
		return
	}
	v := judge(t.toolbox, err, sent)
	if v == lives {
		r.reportAlive(agora.ToAgent(t.tenant, t.id))
		return
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(caller), judgeTime)
	defer cancel()
	code := status.Code(err).String()
	ended, err := r.node.EndDialled(ctx, t.tenant, t.id, v == doubted)
	r.recent.doubt(agora.ToAgent(t.tenant, t.id))
	switch {
	case err != nil && agora.AsError(err).Code != agora.AgentNotFound:
		r.cfg.Log.Info("node that failed a call was not deregistered", "agent", t.id, "tenant", t.tenant, "code", code, "err", err)
	case ended:
		r.cfg.Log.Info("node was deregistered, as it failed a call", "agent", t.id, "tenant", t.tenant, "code", code)
	}
}

// judgeTime bounds how long a caller waits for a node that has failed to be deregistered.
const judgeTime = 3 * time.Second

// reportAlive notes that a node has answered a call, or makes one: at the edge that holds it, which is told now and
// then. Of who is no node nothing is noted.
func (r *registry) reportAlive(at agora.Address) {
	if n := r.held.of(at); n != nil {
		n.Alive()
		return
	}
	if !r.told.isDue(at) {
		return
	}
	r.background(func() {
		ctx, cancel := context.WithTimeout(r.ctx, judgeTime)
		defer cancel()
		if err := r.node.HearDialled(ctx, at.Tenant, at.Agent); err != nil {
			r.cfg.Log.Debug("the edge of a node was not told that it lives", "agent", at.Agent, "err", err)
		}
	})
}

// livenessReports is when the edges of nodes were last told that these live. The zero value is ready to use.
type livenessReports struct {
	mu sync.Mutex // guards the field below
	at map[agora.Address]time.Time
}

// reportEvery is how often the edge of a node is told.
const reportEvery = 5 * time.Second

func (h *livenessReports) isDue(at agora.Address) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	now := time.Now()
	if now.Sub(h.at[at]) < reportEvery {
		return false
	}
	if h.at == nil || len(h.at) >= recentMost {
		h.at = map[agora.Address]time.Time{}
	}
	h.at[at] = now
	return true
}
