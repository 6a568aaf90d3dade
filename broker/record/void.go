package record

import "time"

const (
	VoidAfter  = 60 * time.Second // a record stored later than this after its valid-at is no message
	DoubtAfter = 45 * time.Second // an acknowledgement later than this after it proves nothing: clocks may be apart
)

// IsVoid reports whether a record was stored so late that its sender's lease may have been
// another's by then, and the duplicate table and the fence forgotten. Nobody reads such a record.
func (o Origin) IsVoid(at time.Time) bool {
	return at.Sub(time.UnixMilli(o.ValidAt)) > VoidAfter
}
