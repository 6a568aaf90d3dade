package broker

import (
	"slices"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/broker/scan"
)

// A mailbox overflows while a lane is read page by page: what stood behind the first page is gone when the second is
// asked for. Anyone who reads must not take the next page for what follows.
func TestAScanTellsWhatOverflowTookWhileItRead(t *testing.T) {
	const most = jslog.ReadBatch + 50
	for name, overflows := range map[string]bool{"it overflows": true, "it does not": false} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := testBroker(t, testServer(t, 1), func(c *Config) { c.MaxRecords = most })
			l := b.Lane(lane("s1", 1, false))
			defer l.Close()
			other := b.Lane(lane("s2", 1, false))
			defer other.Close()
			n := uint64(0)
			says := func(l *Lane, count int) {
				for range count {
					n++
					store(t, l, numbered(n, text("x")))
				}
			}
			says(l, 3)
			says(other, jslog.ReadBatch)
			says(l, 3)
			s, torn := scan.NewLaneScan(b.scanner, l.cfg.From, "s1", l.cfg.To), false
			s.Torn = func() { torn = true }
			var read []uint64
			err := s.Run(t.Context(), func(_ record.Origin, _ uint64, parts []agora.Message) error {
				for _, m := range parts {
					if read = append(read, m.N); len(read) == 3 && overflows {
						says(other, most)
					}
				}
				return nil
			})
			if err != nil {
				t.Fatal(err)
			}
			last := n
			if want := []uint64{1, 2, 3, last - 2, last - 1, last}; !overflows && !slices.Equal(read, want) {
				t.Errorf("read %v, want %v", read, want)
			}
			if torn != overflows || s.Cut() != overflows || s.Alive == overflows {
				t.Errorf("torn %t, cut %t, alive %t; want that it is told exactly where it overflows", torn, s.Cut(), s.Alive)
			}
		})
	}
}
