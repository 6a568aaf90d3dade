package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"log/slog"
	"net/http"
	"strings"
	"sync"

	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/p2p"
)

// upstream is the agent behind the sidecar: its card, as it has shown it last, and what may be asked by that.
type upstream struct {
	*agent
	handoff Handoff
	log     *slog.Logger
	changed chan struct{} // holds a token when the session is to say something else of itself

	mu    sync.Mutex // guards the fields below
	card  p2p.Card
	guard *p2p.Guard
	away  bool // the agent did not show its card when it was looked at last
}

// take makes b, which is a card, the one that counts, and reports whether it is another one.
func (u *upstream) take(b []byte) bool {
	c, err := p2p.ReadCard(b, 0)
	if err != nil {
		return false
	}
	u.mu.Lock()
	defer u.mu.Unlock()
	u.away = false
	if u.guard != nil && bytes.Equal(b, u.card.Body) {
		return false
	}
	guard, err := p2p.NewGuard(c.Skills)
	if err != nil {
		u.log.Warn("skills of the card can't be asked for", "err", err)
	}
	guard.Slashes = u.handoff.Slashes
	u.card, u.guard = c, guard
	return true
}

// now returns the card that counts, and its guard.
func (u *upstream) now() (p2p.Card, *p2p.Guard) {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.card, u.guard
}

// isHere reports whether the agent showed its card when it was asked last.
func (u *upstream) isHere() bool {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.guard != nil && !u.away
}

// look asks the agent for its card, and has it count. The caller passes on what it returns.
func (u *upstream) look(ctx context.Context) ([]byte, error) {
	b, err := u.readCard(ctx)
	if err != nil {
		return nil, err
	}
	if u.take(b) {
		signal(u.changed)
	}
	return b, nil
}

// first waits for the agent to show its card.
func (u *upstream) first(ctx context.Context) error {
	for n := 1; ; n++ {
		_, err := u.look(ctx)
		if err == nil {
			<-u.changed // it is registered as it is now
			return nil
		}
		if ctx.Err() != nil {
			return ctx.Err()
		}
		u.log.Warn("waiting for the agent's card", "url", p2p.Target{Path: "/card"}.URL(u.base).String(), "err", err)
		if !pause.For(ctx, u.limit.after(n)) {
			return ctx.Err()
		}
	}
}

// watch looks at the card every now and then, and tells the cluster of each change, until ctx ends.
func (u *upstream) watch(ctx context.Context) {
	for pause.For(ctx, u.limit.Look) {
		_, err := u.look(ctx)
		if ctx.Err() != nil {
			return
		}
		u.mu.Lock()
		was := u.away
		u.away = err != nil
		u.mu.Unlock()
		switch {
		case err != nil && !was:
			u.log.Warn("the agent is away: requests are answered with 502", "err", err)
		case err == nil && was:
			u.log.Info("the agent is back")
		}
	}
}

// ask puts a request that was handed over to the agent, if its card has it.
func (u *upstream) ask(ctx context.Context, q *p2p.Request) (*answer, error) {
	card, guard := u.now()
	target, err := guard.Check(q)
	if f := p2p.FaultOf(err); err != nil && f.Code == http.StatusNotFound {
		if name, arguments, called, bad := q.Tool(); called && bad == nil {
			return u.callSkill(ctx, &card, guard, name, arguments)
		}
	}
	if err != nil {
		return nil, err
	}
	return u.askTarget(ctx, target, q, u.handoff.RawStringBody)
}

// callSkill puts the call of a tool to the skill of that name: by its own method, or POST. Members of the arguments
// fill its path.
func (u *upstream) callSkill(ctx context.Context, card *p2p.Card, guard *p2p.Guard, name string, arguments json.RawMessage) (*answer, error) {
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
		return u.askTarget(ctx, target, q, false)
	}
	return nil, p2p.NewFault(http.StatusNotFound, "the agent has no skill %q", name)
}

func (u *upstream) askTarget(ctx context.Context, target p2p.Target, q *p2p.Request, rawString bool) (*answer, error) {
	body, media := q.Body(rawString)
	header := http.Header{}
	if media != "" {
		header.Set("Content-Type", media)
	}
	return u.put(ctx, question{method: target.Method, url: target.URL(u.base), body: body, header: header})
}
