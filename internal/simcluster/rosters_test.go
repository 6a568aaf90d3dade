package simcluster

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// judgeRosters checks that each coming and going was told once, in turn. What a gap has taken may have been rosters:
// who is in the space is then known again by the next one.
func (w *world) judgeRosters() {
	if w.lax {
		return
	}
	in, version := map[agora.AgentID]bool{}, uint64(0)
	for _, m := range w.logs[w.space] {
		if m.Kind == agora.Gap {
			in = nil
		}
		if m.Kind != agora.Roster {
			continue
		}
		r, err := m.RosterBody()
		if err != nil {
			w.failLocked("roster %q: %v", m.Body, err)
		}
		if m.N <= version {
			w.failLocked("the roster %+v has version %d, the one before it %d", r, m.N, version)
		}
		if version = m.N; in == nil {
			in = before(r)
		}
		w.judgeRoster(in, r)
	}
}

// before returns who was in the space before what a roster tells.
func before(r agora.RosterBody) map[agora.AgentID]bool {
	in := map[agora.AgentID]bool{}
	for _, id := range r.Members {
		in[id] = id != r.Joined
	}
	if r.Left != "" {
		in[r.Left] = true
	}
	return in
}

// judgeRoster compares a roster with who was in the space before it, and has in be who is since.
func (w *world) judgeRoster(in map[agora.AgentID]bool, r agora.RosterBody) {
	id := r.Joined + r.Left
	if joined := r.Joined != ""; in[id] == joined {
		w.failLocked("the roster tells twice that %s joined: %v", id, joined)
	}
	in[id] = r.Joined != ""
	for id, is := range in {
		if slices.Contains(r.Members, id) != is {
			w.failLocked("the roster %+v does not follow from those before: %s", r, id)
		}
	}
	for _, id := range r.Members {
		if !in[id] {
			w.failLocked("the roster %+v has %s, who never joined", r, id)
		}
	}
}

// stillIn says who, by the rosters, has not left; empty when all have.
func (w *world) stillIn() string {
	w.mu.Lock()
	defer w.mu.Unlock()
	log := w.logs[w.space]
	for i := len(log) - 1; i >= 0 && !w.lax; i-- {
		if log[i].Kind != agora.Roster {
			continue
		}
		if r, err := log[i].RosterBody(); err != nil || r.Members == nil || len(r.Members) > 0 {
			return fmt.Sprintf("the last roster is %+v, %v", r, err)
		}
		break
	}
	return ""
}

// TestRostersAreJudgedAcrossAGap has a judge read rosters of which a mailbox that ran over has lost some.
func TestRostersAreJudgedAcrossAGap(t *testing.T) {
	version := uint64(0)
	roster := func(joined, left agora.AgentID, members ...agora.AgentID) agora.Message {
		m := agora.RosterBody{Joined: joined, Left: left, Members: append([]agora.AgentID{}, members...)}.Message()
		version++
		m.N = version
		return m
	}
	gap := agora.Message{Kind: agora.Gap}
	for _, c := range []struct {
		about string
		log   []agora.Message
		bad   string // what is wrong with it; empty for nothing
	}{
		{"all is told", []agora.Message{roster("a", "", "a"), roster("b", "", "a", "b"), roster("", "a", "b")}, ""},
		{"who leaves has joined in a gap", []agora.Message{gap, roster("c", "", "a", "b", "c"), roster("", "a", "b", "c"), roster("", "b", "c")}, ""},
		{"who leaves first has joined in a gap", []agora.Message{roster("a", "", "a"), gap, roster("", "b", "a"), roster("", "a")}, ""},
		{"a leave is told twice behind a gap", []agora.Message{gap, roster("", "a", "b"), roster("", "a", "b")}, "tells twice that a joined: false"},
		{"a join is told twice behind a gap", []agora.Message{gap, roster("a", "", "a"), roster("a", "", "a")}, "tells twice that a joined: true"},
		{"a join is not told", []agora.Message{roster("a", "", "a", "b")}, "who never joined"},
		{"a leave is not told behind a gap", []agora.Message{gap, roster("c", "", "a", "c"), roster("d", "", "c", "d")}, "does not follow"},
		{"a leave is told without a join", []agora.Message{roster("", "a")}, "tells twice that a joined: false"},
		{"a roster does not have who joined", []agora.Message{gap, roster("a", "", "b")}, "does not follow"},
		{"a version comes again", []agora.Message{gap, {Kind: agora.Roster, Media: agora.MediaAgora, Body: roster("a", "", "a").Body}}, "has version 0"},
	} {
		w := &world{logs: map[agora.Address][]agora.Message{}}
		w.logs[w.space] = c.log
		w.judgeRosters()
		if got := strings.Join(w.failures, "; "); (got == "") != (c.bad == "") || !strings.Contains(got, c.bad) {
			t.Errorf("%s: %q, want %q", c.about, got, c.bad)
		}
	}
}
