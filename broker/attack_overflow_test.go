package broker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// TestANumberTellsWhatOverflowTook: a stream was started and given up by its sender, the receipts were lost, and the
// mailbox has taken all but the last record of the lane. By ids nobody can tell that the start was stored before.
func TestANumberTellsWhatOverflowTook(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	sent := []agora.Message{
		numbered(1, part(agora.Start, "s", "1")), numbered(2, part(agora.Chunk, "s", "2")),
		numbered(3, part(agora.Cancel, "s", "3")), numbered(4, text("4")),
	}
	for _, m := range sent {
		store(t, x.old, m)
	}
	flood(t, x.e2, 3)
	x.die()
	heir := x.heir(1)
	for _, m := range sent {
		if r := put(t, heir, m); !r.Again || r.Err != nil {
			t.Errorf("%s sent again: %+v, want that it was there", m.Body, r)
		}
	}
	x.want("gap", "4", "flood", "flood", "flood")
}

// TestWhatOverflowTookWholeIsMarked: not one record of the lane is left. Nobody can know; so what is sent again is
// stored, marked as perhaps told before.
func TestWhatOverflowTookWholeIsMarked(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	store(t, x.old, numbered(1, text("1")))
	store(t, x.old, numbered(2, text("2")))
	flood(t, x.e2, 4)
	x.die()
	heir := x.heir(1)
	store(t, heir, numbered(1, text("1")))
	store(t, heir, numbered(2, text("2")))
	x.want("gap", "flood", "flood", "1 again", "2 again")
}

// TestAnAbortOfWhatMayHaveEndedIsMarked: presence has not heard yet that the stream has ended, and the mailbox has taken
// its end. Whoever saw that must be able to tell the abort from a second end.
func TestAnAbortOfWhatMayHaveEndedIsMarked(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	store(t, x.old, part(agora.Start, "s", "start"))
	store(t, x.old, part(agora.End, "s", "end"))
	flood(t, x.e2, 4)
	x.die()
	cfg := lane("s1", 2, true)
	cfg.Dirty, cfg.Open = 1, []OpenStream{{Stream: "s", Kind: agora.Request}}
	heir := x.e2.Lane(cfg)
	defer heir.Close()
	store(t, heir, text("on"))
	x.want("gap", "flood", "flood", "flood", "abort(s) again", "on again")
}

// TestAStartOfWhichOnlyTheAbortIsLeftIsMarked: the sender has heard neither receipt nor abort, and the mailbox has taken
// the start. Sent again, it must not look like a new one to whoever saw the first.
func TestAStartOfWhichOnlyTheAbortIsLeftIsMarked(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	store(t, x.old, index(agora.Start, "i", 0, "start"))
	store(t, x.old, part(agora.Abort, "i", "STREAM_ABORTED"))
	flood(t, x.e2, 3)
	x.die()
	store(t, x.heir(1), index(agora.Start, "i", 0, "start"))
	x.want("gap", "flood", "flood", "flood", "start again")
}

// TestAStartThatPresenceAloneKnowsIsTaken: the edge died between noting the stream and storing its start, and the
// mailbox is full, so presence's word counts. Refused as open already, its chunks went on without a beginning.
func TestAStartThatPresenceAloneKnowsIsTaken(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	flood(t, x.e2, 3)
	store(t, x.old, numbered(1, text("1")))
	x.die()
	cfg := lane("s1", 2, true)
	cfg.Dirty, cfg.Open = 1, []OpenStream{{Stream: "s", Kind: agora.Request, Indexed: true}}
	heir := x.e2.Lane(cfg)
	defer heir.Close()
	store(t, heir, numbered(2, part(agora.Start, "s", "start")))
	store(t, heir, numbered(3, part(agora.End, "s", "end")))
	x.want("gap", "flood", "1", "start", "end")
}

// TestAStartThatPresenceAloneKnowsIsOwedNoAbort: the same, but the heir could store nothing at first and refused it all. An abort for
// the part that was refused behind the start stood before the stream, which had two ends then.
func TestAStartThatPresenceAloneKnowsIsOwedNoAbort(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, func(c *Config) { c.MaxRecords = 4 })
	flood(t, x.e2, 3)
	store(t, x.old, numbered(1, text("1")))
	x.die()
	var leased atomic.Bool
	cfg := lane("s1", 2, true)
	cfg.Dirty, cfg.Open = 1, []OpenStream{{Stream: "s", Kind: agora.Request, Indexed: true}}
	cfg.Valid = func() (time.Time, bool) { return x.e2.Now(), leased.Load() }
	heir := x.e2.Lane(cfg)
	defer heir.Close()
	start, end := numbered(2, part(agora.Start, "s", "start")), numbered(3, part(agora.End, "s", "end"))
	wantCode(t, put(t, heir, start), agora.Unavailable)
	wantCode(t, put(t, heir, end), agora.Unavailable)
	leased.Store(true)
	store(t, heir, start)
	store(t, heir, end)
	x.want("gap", "flood", "1", "start", "end")
}

// flood stores records of somebody else's.
func flood(t *testing.T, b *Broker, records int) {
	l := b.Lane(LaneConfig{From: "carol", Session: "flood", Epoch: 1, To: bob})
	defer l.Close()
	for range records {
		store(t, l, text("flood"))
	}
}
