package main

import (
	"context"
	"runtime/debug"
	"runtime/metrics"
	"sync"
	"time"
)

const (
	tidyEvery = 2 * time.Second // between two looks
	tidyWorth = 500             // connections that have come or gone for which it is worth while
	tidyQuiet = 500             // frames a second with which an edge counts as quiet, besides
	tidyBeats = 10              // one such frame for so many connections: signs of life
	tidyShare = 16              // growth of memory in use, as a part of it, for which it is worth while
	tidyRest  = 300             // how many times as long as it took of processors it is not done for mere growth again
)

// tidier tells when memory is to be given back to the system: once many connections have come, or gone, or once garbage has
// gathered, and the edge is quiet. The runtime lets a heap grow to twice what is in use before it collects, and keeps that much. Where agents talk
// that is what makes collecting cheap; but many that have just come leave as much garbage as what is kept of them, and
// for as long as they are silent nothing would ever need the room again. What looking after silent ones leaves is little in a second, and
// would yet be half as much as what is kept of them before the runtime collects it.
type tidier struct {
	tidied int64         // connections when memory was given back last
	held   int64         // bytes of memory just after that
	next   time.Duration // when it may be given back again for mere growth
	last   int64         // connections at the last look
	frames int64         // that had come and gone by the last look
}

// edgeState is what a tidier looks at.
type edgeState struct {
	at          time.Duration // since some moment, always the same
	connections int64
	frames      int64 // that have come and gone so far
	held        int64 // bytes of memory that the runtime has of the system
}

// look tells whether memory is to be given back now. Then the caller does, and calls done.
func (t *tidier) look(now edgeState) (tidy bool) {
	talk, moved := now.frames-t.frames, differ(now.connections, t.last)
	t.frames, t.last = now.frames, now.connections
	if moved > now.connections/100 || talk > (tidyQuiet+now.connections/tidyBeats)*int64(tidyEvery/time.Second) {
		return false
	}
	if differ(now.connections, t.tidied) >= max(tidyWorth, t.tidied/8) {
		return true
	}
	return t.tidied >= tidyWorth && now.at >= t.next && now.held > t.held+t.held/tidyShare
}

// done takes how things were when memory had been given back, and what that took of processors.
func (t *tidier) done(now edgeState, took time.Duration) {
	t.tidied, t.held, t.next = now.connections, now.held, now.at+tidyRest*took
}

func differ(a, b int64) int64 { return max(a-b, b-a) }

// tidy gives memory back each time that it is worth while, until stop is called, which waits for the end.
func (e *edgeServer) tidy() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		t, use, tick := tidier{}, newMemoryUse(), time.NewTicker(tidyEvery)
		defer tick.Stop()
		begun, stats := time.Now(), e.door.Stats()
		state := func() edgeState {
			held, _ := use.read()
			return edgeState{time.Since(begun), stats.Connections.Load(), stats.FramesIn.Load() + stats.FramesOut.Load(), held}
		}
		for {
			select {
			case <-tick.C:
				if !t.look(state()) {
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

// memoryUse reads what the runtime's memory takes.
type memoryUse []metrics.Sample

func newMemoryUse() memoryUse {
	return memoryUse{
		{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"},
		{Name: "/cpu/classes/gc/total:cpu-seconds"}, {Name: "/cpu/classes/scavenge/total:cpu-seconds"},
	}
}

// read returns how many bytes the runtime has of the system, and what collecting and giving back have taken of processors so far.
func (u memoryUse) read() (held int64, cpu time.Duration) {
	metrics.Read(u)
	held = int64(u[0].Value.Uint64()) - int64(u[1].Value.Uint64())
	return held, time.Duration((u[2].Value.Float64() + u[3].Value.Float64()) * float64(time.Second))
}
