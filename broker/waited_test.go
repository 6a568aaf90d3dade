package broker

import (
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
)

// testLeased returns a lane that stores while the flag is set.
func testLeased(t *testing.T, b *Broker) (*Lane, *atomic.Bool) {
	leased := new(atomic.Bool)
	leased.Store(true)
	cfg := lane("s1", 1, false)
	cfg.Valid = func() (time.Time, bool) { return b.Now(), leased.Load() }
	l := b.Lane(cfg)
	t.Cleanup(l.Close)
	return l, leased
}

// A number that was refused for the moment comes again with a body that is too large: it is used up.
func TestANumberThatComesAgainTooLargeIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServerOf(t, natsd.Config{MaxPayload: 256 << 10}), nil)
	l, leased := testLeased(t, b)
	leased.Store(false)
	wantCode(t, put(t, l, numbered(1, text("1"))), agora.Unavailable)
	leased.Store(true)
	wantCode(t, put(t, l, numbered(2, text("2"))), agora.Unavailable)
	wantCode(t, put(t, l, numbered(1, text(string(make([]byte, b.MaxRecord()))))), agora.MessageTooLarge)
	store(t, l, numbered(2, text("2")))
}

// A number is refused permanently beside an abort whose answer is lost: the log shows the abort, and the number is used
// up. Where the sender was told meanwhile to send it again, nothing overtakes it.
func TestANumberRefusedBesideARecordInDoubtIsWaitedForAsItsSenderWasTold(t *testing.T) {
	t.Parallel()
	for name, again := range map[string]bool{"refused for good": false, "refused for the moment": true} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, 1)
			c := testCable(t, s)
			a := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
			b := testBroker(t, s, nil)
			l, leased := testLeased(t, a)
			store(t, l, numbered(1, part(agora.Start, "s", "1")))
			leased.Store(false)
			chunk := numbered(2, part(agora.Chunk, "s", "2"))
			wantCode(t, put(t, l, chunk), agora.Unavailable)
			c.Deafen()
			results := make(chan Result, 1)
			l.Pressed(time.Hour) // the abort that is owed and the chunk go into one record
			leased.Store(true)
			l.Put(chunk, func(r Result) { results <- r })
			l.Pressed(0)
			await.True(t, "the abort is stored", func() bool { n, err := b.Unread(t.Context(), bob, 0); return err == nil && n == 2 })
			c.Cut()
			await.True(t, "the connection is lost", func() bool { return !a.Connected() })
			l.mu.Lock()
			l.startRecovery(false)
			l.mu.Unlock()
			want := agora.StreamAborted
			if again {
				l.suspend(jslog.ErrSilent)
				want = agora.Unavailable
			}
			c.Reset()
			wantCode(t, await.Recv(t, "an answer", results), want)
			await.True(t, "the abort is found", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.state == laneActive && l.inflight == nil })
			if again {
				wantCode(t, put(t, l, numbered(3, text("3"))), agora.Unavailable)
				wantCode(t, put(t, l, chunk), agora.StreamAborted)
			}
			store(t, l, numbered(3, text("3")))
		})
	}
}

// A number whose record is in doubt is refused for the moment, and then used up without coming into the lane again. The
// record turns out not to be stored.
func TestANumberInDoubtThatIsUsedUpIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	c, b, l := testCabled(t)
	store(t, l, numbered(1, text("1")))
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	results := make(chan Result, 1)
	l.Put(numbered(2, text("2")), func(r Result) { results <- r })
	l.mu.Lock()
	l.startRecovery(false)
	l.mu.Unlock()
	l.suspend(jslog.ErrSilent)
	wantCode(t, await.Recv(t, "an answer", results), agora.Unavailable)
	l.Pass(2)
	c.Reset()
	await.True(t, "the lane has asked the log", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.state == laneActive })
	store(t, l, numbered(3, text("3")))
}
