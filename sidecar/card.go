package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"strings"
	"sync"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/p2p"
)

// shown is the card that the agent has shown last, and what may be asked by it.
type shown struct {
	mu    sync.Mutex // guards the fields below
	card  p2p.Card
	guard *p2p.Guard
	away  bool // the agent did not show it when it was looked at last
}

// take makes b, which is a card, the one that counts, and reports whether it is another one.
func (s *Sidecar) take(b []byte) bool {
	c, err := p2p.ReadCard(b, 0)
	if err != nil {
		return false
	}
	s.shown.mu.Lock()
	defer s.shown.mu.Unlock()
	s.shown.away = false
	if s.shown.guard != nil && bytes.Equal(b, s.shown.card.Body) {
		return false
	}
	guard, err := p2p.NewGuard(c.Skills)
	if err != nil {
		s.cfg.Log.Warn("skills of the card can't be asked for", "err", err)
	}
	guard.Slashes = s.cfg.Handoff.Slashes
	s.shown.card, s.shown.guard = c, guard
	return true
}

// now returns the card that counts, and its guard.
func (s *shown) now() (p2p.Card, *p2p.Guard) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.card, s.guard
}

// isHere reports whether the agent showed its card when it was asked last.
func (s *shown) isHere() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.guard != nil && !s.away
}

// look asks the agent for its card, and has it count. The caller passes on what it returns.
func (s *Sidecar) look(ctx context.Context) ([]byte, error) {
	b, err := s.agent.card(ctx)
	if err != nil {
		return nil, err
	}
	if s.take(b) {
		signal(s.changed)
	}
	return b, nil
}

// firstCard waits for the agent to show its card.
func (s *Sidecar) firstCard(ctx context.Context) error {
	for n := 1; ; n++ {
		_, err := s.look(ctx)
		if err == nil {
			<-s.changed // it is registered as it is now
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		s.cfg.Log.Warn("waiting for the agent's card", "url", p2p.Target{Path: "/card"}.URL(s.agent.base).String(), "err", err)
		if !pause.For(ctx, s.cfg.Limits.after(n)) {
			return ctx.Err()
		}
	}
}

// watchCard looks at the card every now and then, and tells the cluster of each change, until ctx ends.
func (s *Sidecar) watchCard(ctx context.Context) {
	for pause.For(ctx, s.cfg.Limits.Look) {
		_, err := s.look(ctx)
		if ctx.Err() != nil {
			return
		}
		s.shown.mu.Lock()
		was := s.shown.away
		s.shown.away = err != nil
		s.shown.mu.Unlock()
		switch {
		case err != nil && !was:
			s.cfg.Log.Warn("the agent is away: requests are answered with 502", "err", err)
		case err == nil && was:
			s.cfg.Log.Info("the agent is back")
		}
	}
}

// ask puts a request that was handed over to the agent, if its card has it.
func (s *Sidecar) ask(ctx context.Context, q *p2p.Request) (*answer, error) {
	card, guard := s.shown.now()
	target, err := guard.Check(q)
	if f := p2p.FaultOf(err); err != nil && f.Code == http.StatusNotFound {
		if name, arguments, called, bad := q.Tool(); called && bad == nil {
			return s.callSkill(ctx, &card, guard, name, arguments)
		}
	}
	if err != nil {
		return nil, err
	}
	return s.askTarget(ctx, target, q, s.cfg.Handoff.RawStringBody)
}

// callSkill puts the call of a tool to the skill of that name: by its own method, or POST. Members of the arguments fill its path.
func (s *Sidecar) callSkill(ctx context.Context, card *p2p.Card, guard *p2p.Guard, name string, arguments json.RawMessage) (*answer, error) {
	for i := range card.Skills {
		skill := &card.Skills[i]
		if skill.Name != name {
			continue
		}
		if skill.Path == "" {
			return nil, p2p.NewFault(http.StatusNotFound, "skill %q has no path", name)
		}
		q := &p2p.Request{Method: http.MethodPost, Path: skill.Path}
		if string(arguments) != "null" {
			q.Input = arguments
		}
		if len(skill.Methods) > 0 {
			q.Method = strings.ToUpper(skill.Methods[0])
		}
		if q.Method == http.MethodGet || q.Method == http.MethodHead {
			q.Input = nil
		}
		if bytes.HasPrefix(bytes.TrimLeft(arguments, " \t\r\n"), []byte("{")) {
			q.Params = arguments
		}
		target, err := guard.Check(q)
		if err != nil {
			return nil, err
		}
		return s.askTarget(ctx, target, q, false)
	}
	return nil, p2p.NewFault(http.StatusNotFound, "the agent has no skill %q", name)
}

func (s *Sidecar) askTarget(ctx context.Context, target p2p.Target, q *p2p.Request, rawString bool) (*answer, error) {
	body, media := q.Body(rawString)
	header := http.Header{}
	if media != "" {
		header.Set("Content-Type", media)
	}
	return s.agent.ask(ctx, question{method: target.Method, url: target.URL(s.agent.base), body: body, header: header})
}
