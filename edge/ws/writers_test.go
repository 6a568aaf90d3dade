package ws

import (
	"runtime"
	"testing"
)

// A goroutine made for each chunk that comes alone would have its stack grow each time.
func TestAWriterThatHasEndedWritesForTheNext(t *testing.T) {
	d, _ := serve(t, Config{}, node{})
	c := &conn{door: d}
	// On average: one that is about to wait is missed, and another one made in its place.
	if n := testing.AllocsPerRun(1000, func() {
		d.writers.start(c)
		runtime.Gosched() // AllocsPerRun leaves one processor, on which the writer has not run yet
		for d.writers.idle.Load() == 0 {
			runtime.Gosched()
		}
	}); n != 0 {
		t.Errorf("%.1f allocations for each start, want none", n)
	}
}

func TestWritersThatAreNotNeededEnd(t *testing.T) {
	d, _ := serve(t, Config{}, node{})
	c := &conn{door: d}
	for range 10 * maxIdle {
		d.work.Go(func() { d.writers.run(c) })
	}
	for d.writers.idle.Load() != maxIdle {
		runtime.Gosched()
	}
}
