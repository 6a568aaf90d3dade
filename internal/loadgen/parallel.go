package loadgen

import "sync"

// each does something for all, as many at a time as connections are opened, and returns the first error.
func each[T any](all []T, f func(T) error) error { return some(all, dialing, f) }

// some does something for all, so many at a time, and returns the first error.
func some[T any](all []T, atOnce int, f func(T) error) (err error) {
	var mu sync.Mutex
	var wg sync.WaitGroup
	slots := make(chan struct{}, atOnce)
	failed := func() bool {
		mu.Lock()
		defer mu.Unlock()
		return err != nil
	}
	for _, v := range all {
		slots <- struct{}{}
		if failed() {
			break
		}
		wg.Go(func() {
			defer func() { <-slots }()
			if e := f(v); e != nil {
				mu.Lock()
				defer mu.Unlock()
				if err == nil {
					err = e
				}
			}
		})
	}
	wg.Wait()
	return err
}
