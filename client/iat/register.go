package iat

import (
	"context"
	"encoding/json"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// register declares the agent and its tools, and returns how long that stands; 0 where nothing is known.
func (p *peer) register(ctx context.Context) (time.Duration, error) {
	if p.bad != nil {
		return 0, p.bad
	}
	var agent any = p.cfg.Agent
	if p.cfg.Name != "" || p.cfg.Description != "" {
		agent = struct {
			ID          string `json:"id"`
			Name        string `json:"name,omitempty"`
			Description string `json:"description,omitempty"`
		}{p.cfg.Agent, p.cfg.Name, p.cfg.Description}
	}
	members := []member{{"action", "register"}, {"agent", agent}}
	if len(p.tools) > 0 {
		members = append(members, member{"tools", p.tools})
	}
	if p.cfg.Root != "" {
		members = append(members, member{"workspace_root", p.cfg.Root})
	}
	payload, err := object(members...)
	if err != nil {
		return 0, err
	}
	e, err := p.Ask(ctx, &Envelope{Header: Header{To: cluster}, Payload: payload})
	if err != nil {
		return 0, err
	}
	var answer struct {
		Expires int64 `json:"expires_at"`
	}
	_ = json.Unmarshal(e.Payload, &answer) // without it nothing is known
	if e.Header.Timestamp == 0 || answer.Expires <= e.Header.Timestamp {
		return 0, nil
	}
	return time.Duration(answer.Expires-e.Header.Timestamp) * time.Second, nil
}

// usualTTL is for how long a registration is taken to stand of which that is not known.
const usualTTL = 20 * time.Minute

// keepRegistered registers again before half of what a registration stands is over, until ctx ends.
func (p *peer) keepRegistered(ctx context.Context, stands time.Duration) {
	for {
		if stands <= 0 {
			stands = usualTTL
		}
		if !pause.For(ctx, max(stands/2-stands/16, p.cfg.Backoff.Min)) {
			return
		}
		next, err := p.register(ctx)
		if err != nil && ctx.Err() == nil {
			p.cfg.Log.Warn("registration is not renewed", "agent", p.cfg.Agent, "err", err)
			next = 2 * p.cfg.Backoff.Max
		}
		stands = next
	}
}
