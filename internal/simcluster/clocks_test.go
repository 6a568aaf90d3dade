package simcluster

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// clocks are edges whose clocks are hours apart, and requests that are to be answered in time.
type clocks struct {
	w   *world
	all []*timed // guarded by the world's mu
}

// timed is a request with a deadline.
type timed struct {
	by, to *agent
	ends   time.Time
}

func newClocks(w *world) scene { return &clocks{w: w} }

// off returns how far the clock of the n-th edge is off, in a history of such.
func (p *Plan) off(n int) time.Duration {
	if !slices.Contains(p.Scenes, "clocks") {
		return 0
	}
	return newDice(p.Seed+uint64(n)).millis(-2*3600*1000, 2*3600*1000)
}

func (s *clocks) usual() string { return "asks in time" }

func (s *clocks) steps() map[string]func(*dice) { return map[string]func(*dice){"asks in time": s.ask} }

// ask has an agent make a request that nobody answers: it is told so when the time is over, and not before.
func (s *clocks) ask(d *dice) {
	a, b, within := s.w.anAgent(d), s.w.anAgent(d), d.millis(500, 20_000)
	s.w.mu.Lock()
	k := len(s.all)
	t := &timed{by: a, to: b}
	if a == b || !a.ready || !b.began {
		s.w.mu.Unlock()
		return
	}
	s.all = append(s.all, t)
	door := a.d
	s.w.mu.Unlock()
	a.tell(upward{verb: does, do: func(ctx context.Context, x *edge.Session) {
		s.w.mu.Lock()
		t.ends = time.Now().Add(within)
		s.w.mu.Unlock()
		id := fmt.Sprint("in-time-", k)
		m := agora.Message{Kind: agora.Request, ID: id, To: agora.Address{Agent: b.id}, Body: fmt.Appendf(nil, `{"timed":%d}`, k)}
		m.Meta.Request, m.Meta.Deadline = id, door.e.broker.Now().Add(within)
		_ = x.Do(ctx, &edge.Command{Verb: edge.Send, Message: m, ID: id, Request: id, Told: func(n edge.Notice) { s.told(t, k, n) }}) // it may be refused
	}})
}

// clockMargin is by how much the log's time and an edge's idea of it may differ.
const clockMargin = time.Second

// told takes what an edge tells the asker.
func (s *clocks) told(t *timed, k int, n edge.Notice) {
	if n.Err == nil || n.Err.Code != agora.Timeout {
		return
	}
	s.w.mu.Lock()
	defer s.w.mu.Unlock()
	if left := time.Until(t.ends); left > clockMargin {
		s.w.failLocked("%s is told %v before its time is over that request %d was not answered in time", t.by.id, left, k)
	}
}

// heard implements listener: who is asked learns how much time is left.
func (s *clocks) heard(a *agent, m *agora.Message) {
	var body struct {
		Timed *int `json:"timed"`
	}
	if m.Kind != agora.Request || json.Unmarshal(m.Body, &body) != nil || body.Timed == nil || *body.Timed >= len(s.all) {
		return
	}
	t := s.all[*body.Timed]
	if d := m.Meta.Deadline.Sub(t.ends); d.Abs() > clockMargin || t.to != a {
		s.w.failLocked("request %d came to %s with %v too much time", *body.Timed, a.id, d)
	}
}

// received implements receiver: these requests are no parts, of which it is known what has come.
func (s *clocks) received(_ *agent, by agora.AgentID, r *agora.ReceiptBody) bool {
	var k int
	_, err := fmt.Sscanf(r.ID, "in-time-%d", &k)
	return err == nil && k < len(s.all) && s.all[k].to.id == by
}

// missing implements scene: nothing is waited for.
func (s *clocks) missing() string { return "" }

// judge implements scene: what agents got is everybody's.
func (s *clocks) judge() {}
