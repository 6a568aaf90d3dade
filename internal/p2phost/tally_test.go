package p2phost

import "sync/atomic"

// tally is the Admitter of a test, and the Admission of all its connections.
type tally struct {
	most    int64 // bytes; no limit if 0
	streams int64 // no limit if 0

	held, open, released atomic.Int64
}

// Admit implements Admitter.
func (a *tally) Admit(Secured) (Admission, error) { return a, nil }

// Hold implements Admission.
func (a *tally) Hold(n int) bool { return a.held.Add(int64(n)) <= a.most || a.most == 0 }

// Stream implements Admission.
func (a *tally) Stream(n int) bool {
	if n > 0 && a.streams > 0 && a.open.Load() >= a.streams {
		return false
	}
	a.open.Add(int64(n))
	return true
}

// Release implements Admission.
func (a *tally) Release() { a.released.Add(1) }
