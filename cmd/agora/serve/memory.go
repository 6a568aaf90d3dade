package serve

import (
	"context"
	"os"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

// trimMemory gives memory back each time that it is worth while, until stop is called, which waits for the end. An edge
// that is alone in its process has garbage collected sooner while many agents come; beside a log, whose memory is many
// times as much, that costs more than it spares.
func (e *edgeServer) trimMemory(alone bool) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		t, use, tick, percent := trimmer{}, newMemoryUse(), time.NewTicker(tidyEvery), usualGarbage
		defer tick.Stop()
		if alone {
			defer collectAt(usualGarbage)
		}
		begun := time.Now()
		state := func() edgeState {
			held, _ := use.read()
			connections, frames := e.doors.traffic()
			return edgeState{time.Since(begun), connections, frames, held}
		}
		for {
			select {
			case <-tick.C:
				tidy := t.look(state())
				if want := t.garbage(use.live()); alone && want != percent {
					percent = want
					collectAt(percent)
				}
				if !tidy {
					continue
				}
				_, before := use.read()
				debug.FreeOSMemory()
				_, after := use.read()
				t.done(state(), after-before)
				e.log.Debug("memory was given back", "held", t.held, "connections", t.tidied, "cpu", after-before)
			case <-ctx.Done():
				return
			}
		}
	})
	return func() {
		cancel()
		running.Wait()
	}
}

// How much garbage there may be, in percent of what is in use (GOGC).
const (
	usualGarbage = 100 // Go's default
	leastGarbage = 25  // while many agents come, but never less than fewGarbage
	mostGarbage  = 400 // while agents talk, but never more than muchGarbage
)

const (
	fewGarbage  = 4 << 20  // bytes of garbage that are never worth collecting sooner: each time costs what the process itself has in use, whoever is there
	muchGarbage = 48 << 20 // bytes of garbage that are worth having, for the same reason, while much is made of it
)

// garbage returns how much garbage there may be from now on, while so many bytes are in use.
func (t *trimmer) garbage(live int64) (percent int) {
	switch {
	case t.coming:
		return garbageWhileComing(live)
	case t.talks:
		return garbageWhileTalking(live)
	case t.last >= trimWorth && live <= muchGarbage: // a crowd that is quiet: so little is made and in use that collecting is cheap, and nobody waits for it
		return garbageWhileComing(live)
	}
	return usualGarbage
}

// garbageWhileTalking returns how much garbage there may be while agents talk: what an edge with few agents has in use
// is so little that it would be collecting all the time. It is a multiple of the usual, as each change stops the
// process for a moment.
func garbageWhileTalking(live int64) (percent int) {
	return int(min(max(muchGarbage/max(live, 1), 1)*usualGarbage, mostGarbage))
}

// garbageWhileComing returns how much garbage there may be while many agents come and so many bytes are in use. What is
// kept of agents that come lies between the garbage of their coming: the less of that there is at a time, the fewer
// holes are left of it, which nothing that comes later fills.
func garbageWhileComing(live int64) (percent int) {
	return int(min(max(fewGarbage*100/max(live, 1), leastGarbage), usualGarbage))
}

// collectAt has garbage collected when there is so much of it, in percent of what is in use, unless the operator says
// when (GOGC).
func collectAt(percent int) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(percent)
	}
}

// memoryUse reads what the runtime's memory takes.
type memoryUse []metrics.Sample

func newMemoryUse() memoryUse {
	return memoryUse{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/scavenge/total:cpu-seconds"},
		{Name: "/gc/heap/live:bytes"},
	}
}

// read returns how many bytes the runtime has of the system, and what collecting and giving back have taken of
// processors so far.
func (u memoryUse) read() (held int64, cpu time.Duration) {
	metrics.Read(u)
	held = int64(u[0].Value.Uint64()) - int64(u[1].Value.Uint64())
	return held, time.Duration((u[2].Value.Float64() + u[3].Value.Float64()) * float64(time.Second))
}

// live returns how many bytes of the heap were in use when garbage was collected last.
func (u memoryUse) live() int64 {
	metrics.Read(u)
	return int64(u[4].Value.Uint64())
}
