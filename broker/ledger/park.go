package ledger

import "time"

// Parked is what has to be kept of a ledger whose lane is put aside. The zero value is that of a lane that was never used.
type Parked struct {
	lastN        uint64
	holes        spans
	whole, exact bool
}

// Park returns what has to be kept, and whether that says all: else the log has to be read before the next record, as what is told
// apart by id or index may be said again within the window. It returns false where a lane that is put aside could not answer for what is open.
func (l *Ledger) Park(now time.Time, window time.Duration) (p Parked, all, ok bool) {
	if l.open > 0 || l.blocked != 0 || len(l.doubted) > 0 {
		return Parked{}, false, false
	}
	all = !now.Before(l.unsure) && (l.loose.IsZero() || now.Sub(l.loose) >= window)
	return Parked{lastN: l.lastN, holes: l.holes, whole: l.whole, exact: l.exact}, all, true
}

// Unpark returns the ledger of a lane that goes on.
func (p Parked) Unpark() Ledger {
	return Ledger{lastN: p.lastN, kept: p.lastN, holes: p.holes, whole: p.whole, exact: p.exact}
}
