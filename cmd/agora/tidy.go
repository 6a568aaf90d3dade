package main

import (
	"context"
	"runtime/debug"
	"sync"
	"time"
)

const (
	tidyEvery = 2 * time.Second // between two looks
	tidyWorth = 500             // connections that have come or gone for which it is worth while
	tidyQuiet = 500             // frames a second with which an edge counts as quiet
)

// tidier tells when memory is to be given back to the system: once many connections have come, or gone, and the
// edge is quiet. The runtime lets a heap grow to twice what is in use before it collects, and keeps that much. Where agents talk
// that is what makes collecting cheap; but many that have just come leave as much garbage as what is kept of them, and
// for as long as they are silent nothing would ever need the room again.
type tidier struct {
	tidied int64 // connections when memory was given back last
	last   int64 // connections at the last look
	frames int64 // that had come and gone by the last look
}

// look takes how many connections there are and how many frames have come and gone so far.
func (t *tidier) look(connections, frames int64) (tidy bool) {
	talk, moved := frames-t.frames, differ(connections, t.last)
	t.frames, t.last = frames, connections
	if moved > connections/100 || talk > tidyQuiet*int64(tidyEvery/time.Second) {
		return false
	}
	if differ(connections, t.tidied) < max(tidyWorth, t.tidied/8) {
		return false
	}
	t.tidied = connections
	return true
}

func differ(a, b int64) int64 { return max(a-b, b-a) }

// tidy gives memory back each time that it is worth while, until stop is called, which waits for the end.
func (e *edgeServer) tidy() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		t, stats, tick := tidier{}, e.door.Stats(), time.NewTicker(tidyEvery)
		defer tick.Stop()
		for {
			select {
			case <-tick.C:
				if t.look(stats.Connections.Load(), stats.FramesIn.Load()+stats.FramesOut.Load()) {
					debug.FreeOSMemory()
				}
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
