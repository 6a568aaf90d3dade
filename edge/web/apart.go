package web

import "sync"

// Apart calls f on a goroutine of its own, and returns when it has returned. What goes deep is done so before a
// goroutine that lasts comes to rest: its own stack stays small. A panic of f is the caller's.
func Apart(f func()) {
	var work sync.WaitGroup
	var thrown any
	work.Go(func() {
		defer func() { thrown = recover() }()
		f()
	})
	work.Wait()
	if thrown != nil {
		panic(thrown)
	}
}
