package broker

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// laneTurn is how a lane stands with the coalescer.
type laneTurn uint8

const (
	noTurn     laneTurn = iota
	awaitsTurn          // its next record waits for those of other lanes
	hasTurn             // that wait is over: the next record may go
)

// lanePace is how long a lane waits before each record, so that more gathers.
type lanePace struct {
	pause time.Duration // 0 for none
	due   time.Time     // when the next may go; zero when no pause is running
}

func (p *lanePace) running() bool { return !p.due.IsZero() }

// Pressed makes the lane wait at least pause before each record, so that more gathers; 0 ends it.
func (l *Lane) Pressed(pause time.Duration) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.pace.pause = pause
	if pause == 0 && l.pace.running() {
		l.pace = lanePace{}
		l.advance()
		l.tellLater()
	}
}

// waits reports whether the next record has to wait, so that more gathers: for the end of the lane's pause, or for
// other lanes.
func (l *Lane) waits() bool {
	had := l.turn == hasTurn
	l.turn = noTurn
	if l.pace.pause > 0 {
		now := time.Now()
		if !l.pace.running() {
			l.pace.due = now.Add(l.pace.pause)
			l.watch()
		}
		if now.Before(l.pace.due) {
			return true
		}
		l.pace.due = time.Time{}
		return false
	}
	if !had && l.queue.first != nil && l.b.coalescer.hold(l) {
		l.turn = awaitsTurn
		return true
	}
	return false
}

// haveTurn ends the lane's wait for other lanes.
func (l *Lane) haveTurn() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.turn = hasTurn
	l.advance()
	l.tell()
}

// coalescer makes the lanes of a busy edge wait for each other: while records are in flight, the next ones leave
// together, every few milliseconds, and each holds all that its lane was given until then. So there are fewer records,
// each of which costs every server that stores it and every thread that it wakes. On an edge with few records in flight
// no lane waits.
type coalescer struct {
	inFlight  atomic.Int64 // records on their way
	roundTrip atomic.Int64 // how long records took lately, in nanoseconds
	timer     *time.Timer  // when lanes are to be let go

	mu    sync.Mutex // guards the fields below; taken under a lane's lock, never before it
	lanes []*Lane    // that wait
	spare []*Lane
	last  int64 // ticks when some were let go last
}

const (
	coalesceFrom  = 4                    // records on their way with which the next one waits
	maxCoalescing = 256                  // lanes that wait: more at once would swamp the log
	coalescePart  = 2                    // a lane waits for this part of the time that a record takes …
	coalesceMin   = time.Millisecond     // … but so long at least, as timers are no finer, …
	coalesceMax   = 8 * time.Millisecond // … and no longer than this
)

func (g *coalescer) init() { g.timer = time.NewTimer(time.Hour) }

// hold reports whether a lane has to wait with its next record. If so, the coalescer calls the lane's haveTurn soon.
func (g *coalescer) hold(l *Lane) bool {
	if g.inFlight.Load() < coalesceFrom {
		return false
	}
	now := agora.Ticks()
	g.mu.Lock()
	defer g.mu.Unlock()
	if len(g.lanes) == 0 {
		left := g.pause() - time.Duration(now-g.last)
		if left <= 0 {
			g.last = now
			return false
		}
		g.timer.Reset(left)
	}
	if len(g.lanes) >= maxCoalescing {
		return false // the goroutine of its Put sends it, and the connection holds that back
	}
	g.lanes = append(g.lanes, l)
	return true
}

// pause returns the time between two turns. When records take long, as machines are busy or there are many replicas,
// waiting adds less to the latency and saves more.
func (g *coalescer) pause() time.Duration {
	return min(max(time.Duration(g.roundTrip.Load())/coalescePart, coalesceMin), coalesceMax)
}

// observe notes how long a record took. It is called by one goroutine at a time.
func (g *coalescer) observe(took time.Duration) {
	const weight = 16 // of what was known before
	trip := g.roundTrip.Load()
	g.roundTrip.Store(trip + (int64(took)-trip)/weight)
}

// take removes and returns the lanes that wait. The caller clears the slice and does not use it after the next call.
func (g *coalescer) take() []*Lane {
	g.mu.Lock()
	defer g.mu.Unlock()
	lanes := g.lanes
	g.lanes, g.spare = g.spare[:0], lanes
	g.last = agora.Ticks()
	return lanes
}

// run gives the waiting lanes their turns until ctx is over.
func (g *coalescer) run(ctx context.Context) {
	defer g.timer.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-g.timer.C:
		}
		lanes := g.take()
		for _, l := range lanes {
			l.haveTurn()
		}
		clear(lanes)
	}
}
