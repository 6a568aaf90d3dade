package ownership

import (
	"testing"
	"time"
)

// Records say when their edge's lease was last renewed, and those that are stored long after that are nobody's.
func TestALongLeaseIsRenewedOftenEnoughForWhatIsStored(t *testing.T) {
	for lease, want := range map[time.Duration]time.Duration{
		15 * time.Second: time.Second, 10 * time.Minute: 10 * time.Second, 24 * time.Hour: 10 * time.Second,
	} {
		l := &Lease{cfg: &Config{Lease: lease}}
		if got := l.interval(); got != want {
			t.Errorf("a lease of %v is renewed every %v, want %v", lease, got, want)
		}
	}
}
