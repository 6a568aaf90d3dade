package sidecar

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/wire/p2p"
)

// word is edges that say of every peer that it may speak, or not.
type word struct {
	*gate
	allowed, away, old atomic.Bool
	edges              atomic.Pointer[string] // as GET /p2p lists them
	asked, listed      atomic.Int64
}

func newWord(t *testing.T) *word {
	t.Helper()
	w := new(word)
	none := `{"edges":[]}`
	w.edges.Store(&none)
	s := httptest.NewServer(http.HandlerFunc(func(to http.ResponseWriter, r *http.Request) {
		switch {
		case w.away.Load():
			to.WriteHeader(http.StatusServiceUnavailable)
		case r.URL.Path == "/p2p":
			w.listed.Add(1)
			fmt.Fprint(to, *w.edges.Load())
		case r.URL.Path == "/p2p/access" && !w.old.Load():
			w.asked.Add(1)
			fmt.Fprintf(to, `{"allowed":%v,"why":"because"}`, w.allowed.Load())
		default:
			to.WriteHeader(http.StatusNotFound)
		}
	}))
	e := &edges{urls: []string{s.URL}, token: func(context.Context) (string, error) { return "", nil }}
	t.Cleanup(func() {
		e.close()
		s.Close()
	})
	var err error
	if w.gate, err = newGate(e, nil); err != nil {
		t.Fatal(err)
	}
	w.id = "plain"
	return w
}

// admits asks for a peer as a stream does.
func (w *word) admits(t *testing.T, p peer.ID) error {
	if known, err := w.standing(p); known {
		return err
	}
	return w.admit(await.Context(t), p)
}

// age has what was said of a peer be so old.
func (w *word) age(p peer.ID, by time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	a := w.gate.asked[p]
	a.at = time.Now().Add(-by)
	w.gate.asked[p] = a
}

func someone(t *testing.T) peer.ID {
	t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

func TestAnEdgesWordIsKeptForAMoment(t *testing.T) {
	w, p := newWord(t), someone(t)
	for _, c := range []struct {
		about         string
		age           time.Duration
		allowed, away bool
		admitted      bool
		asked         int64
		fault         int
	}{
		{"at first", 0, true, false, true, 1, 0},
		{"a moment later", accessFresh / 2, false, false, true, 1, 0},
		{"when that is over", accessFresh, false, false, false, 2, 403},
		{"a moment behind that", accessFresh / 2, true, false, false, 2, 403},
		{"and over again", accessFresh, true, false, true, 3, 0},
		{"when no edge answers", accessStale / 2, true, true, true, 3, 0},
		{"nor for a minute", accessStale, true, true, false, 3, 500},
		{"and edges are back", 0, true, false, true, 4, 0},
	} {
		if c.age > 0 {
			w.age(p, c.age)
		}
		w.allowed.Store(c.allowed)
		w.away.Store(c.away)
		err := w.admits(t, p)
		if (err == nil) != c.admitted || w.asked.Load() != c.asked {
			t.Errorf("%s: %v, and edges were asked %d times, want it let in %v, and %d", c.about, err, w.asked.Load(), c.admitted, c.asked)
		}
		if f := string(p2p.AppendFault(nil, err)); c.fault > 0 && !strings.Contains(f, fmt.Sprintf(`"code":%d`, c.fault)) {
			t.Errorf("%s: the peer is told %s, want %d", c.about, f, c.fault)
		}
		if c.about == "nor for a minute" {
			w.age(p, 2*accessStale)
		}
	}
}

func TestEdgesAreAskedOnceForAllStreamsOfAPeer(t *testing.T) {
	w, p := newWord(t), someone(t)
	w.allowed.Store(true)
	var all sync.WaitGroup
	for range 50 {
		all.Go(func() {
			if err := w.admits(t, p); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if n := w.asked.Load(); n != 1 {
		t.Errorf("edges were asked %d times", n)
	}
}

// Ids cost nothing: who comes under many gets edges asked no more often than a few times a second.
func TestManyStrangersDoNotHaveEdgesAskedWithoutBound(t *testing.T) {
	w := newWord(t)
	begun := time.Now()
	for range 10 * askRate {
		if err := w.admits(t, someone(t)); err == nil {
			t.Fatal("a stranger was let in")
		}
	}
	most := int64(askRate * (2 + time.Since(begun).Seconds()))
	if n := w.asked.Load(); n > most || n < askRate {
		t.Errorf("edges were asked about %d peers, want %d at most", n, most)
	}
	if n := w.listed.Load(); n > int64(2+time.Since(begun)/listEvery) {
		t.Errorf("edges were asked %d times which of them there are", n)
	}
	if len(w.gate.asked) > mostAsked {
		t.Errorf("%d answers are kept", len(w.gate.asked))
	}
}

func TestEdgesThatCantSayWhoMayLetNobodyIn(t *testing.T) {
	w, p := newWord(t), someone(t)
	w.allowed.Store(true)
	w.old.Store(true)
	if err := w.admits(t, p); err == nil {
		t.Error("a stranger was let in")
	}
	open := `{"edges":[],"open":true}`
	w.edges.Store(&open)
	w.gate.mu.Lock()
	w.gate.listed = time.Time{}
	w.gate.mu.Unlock()
	if err := w.admits(t, p); err != nil {
		t.Errorf("where nobody is asked who they are: %v", err)
	}
}

func TestAnEdgeIsBelievedWhileThePeerIsBound(t *testing.T) {
	w, p := newWord(t), someone(t)
	for _, list := range []string{`{"edges":[{"peer_id":%q}]}`, `{"edges":[],"draining":[%q]}`} {
		edges := fmt.Sprintf(list, p)
		w.edges.Store(&edges)
		w.learn(&edgeList{})
		w.gate.mu.Lock()
		w.gate.listed = time.Time{}
		w.gate.mu.Unlock()
		w.boundUntil(time.Time{})
		if err := w.admits(t, p); err == nil || !strings.Contains(string(p2p.AppendFault(nil, err)), `"code":403`) {
			t.Errorf("%s: an edge is told %v before the peer is bound", list, err)
		}
		w.boundUntil(time.Now().Add(time.Minute))
		if err := w.admits(t, p); err != nil {
			t.Errorf("%s: an edge is told %v", list, err)
		}
	}
	if n := w.asked.Load(); n > 0 {
		t.Errorf("edges were asked about one of them %d times", n)
	}
}
