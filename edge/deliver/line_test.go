package deliver

import (
	"bytes"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/edge"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// peer is a line whose peer takes what is written to it as long as it is not stuck.
type peer struct {
	Outbox

	mu    sync.Mutex // guards the fields below
	got   bytes.Buffer
	once  int        // bytes that it takes at once of a write; all if negative
	stuck *sync.Cond // on mu: nil where it takes everything
	err   error      // of a write
	kills []edge.Cause
	ended int
	wrote func() // told of each write; nil for nobody
}

func (p *peer) Encode(dst []byte, ds []edge.Delivery, _ *Writer) []byte { return dst }

func (p *peer) Write(b []byte, w *Writer) (taken int, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.wrote != nil {
		p.wrote()
	}
	if taken = len(b); p.once >= 0 {
		taken = min(taken, p.once)
	}
	p.got.Write(b[:taken])
	if taken == len(b) && p.stuck == nil && p.err == nil || w == nil {
		return taken, nil
	}
	w.Waits()
	for p.stuck != nil && p.err == nil {
		p.stuck.Wait()
	}
	if p.err != nil {
		return taken, p.err
	}
	p.got.Write(b[taken:])
	return len(b), nil
}

func (p *peer) Kill(why edge.Cause) {
	p.GiveUp()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.kills = append(p.kills, why)
	if p.err = errKilled; p.stuck != nil {
		p.stuck.Broadcast()
	}
}

func (p *peer) Ended(*Writer) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ended++
}

// sticks has the peer take nothing until it lets go.
func (p *peer) sticks() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.once, p.stuck = 0, sync.NewCond(&p.mu)
}

func (p *peer) letsGo() {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := p.stuck
	p.once, p.stuck = -1, nil
	s.Broadcast()
}

// has returns what the peer got.
func (p *peer) has() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.got.String()
}

// givenUp returns why the peer was given up, each time.
func (p *peer) givenUp() []edge.Cause {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.kills)
}

// isStage returns the stage of the outbox.
func (p *peer) isStage() stage {
	p.Outbox.mu.Lock()
	defer p.Outbox.mu.Unlock()
	return p.stage
}

var errKilled = errors.New("killed")

// writersOf returns writers, of which so many count, that end with the test.
func writersOf(t testing.TB, most int) *Writers {
	t.Helper()
	var work sync.WaitGroup
	w := &Writers{Answers: 1 << 20, Linger: time.Hour, Work: &work, Log: slog.New(slog.DiscardHandler)}
	w.Init()
	w.most = most
	t.Cleanup(func() {
		w.End()
		work.Wait()
	})
	return w
}

// peersOf returns peers for which writers write.
func peersOf(w *Writers, n int) (all []*peer) {
	for range n {
		p := &peer{once: -1}
		p.Init(p, w, edge.Admission{})
		all = append(all, p)
	}
	return all
}
