package pump

import "time"

// FirstDelay is the pause after something that failed, where that before it went well; each one after it is twice as long.
const FirstDelay = 100 * time.Millisecond

// Retry has something done again that has failed, after a pause that doubles: once, however often it has failed meanwhile. Its methods are for one
// goroutine at a time; those of a nil Retry, but for Again, do nothing.
type Retry struct {
	Longest time.Duration // the longest pause

	timer *time.Timer
	pause time.Duration // the last one; 0 once it has gone well
}

// Again has f called on a goroutine of its own after a pause, which it returns, in place of what was to be called before. It does not block.
func (r *Retry) Again(f func()) time.Duration {
	r.pause = min(max(2*r.pause, FirstDelay), r.Longest)
	if r.timer == nil {
		r.timer = time.AfterFunc(r.pause, f)
	} else {
		r.timer.Reset(r.pause)
	}
	return r.pause
}

// Over notes that it has gone well: the next pause is a short one.
func (r *Retry) Over() {
	if r != nil {
		r.pause = 0
	}
}

// Stop has nothing called any more that has not been yet.
func (r *Retry) Stop() {
	if r != nil && r.timer != nil {
		r.timer.Stop()
	}
}
