package broker

import (
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// Of a frame that goes out in parts the last one alone has a number. Where the first was refused for the moment the others must be,
// too, or the number would be used up, and the sender be told that it can't come again.
func TestPartsWaitForTheStartThatWasRefused(t *testing.T) {
	t.Parallel()
	for name, refuse := range map[string]func(t *testing.T, l *Lane, c *faultnet.Proxy, leased *atomic.Bool, start agora.Message){
		"without a lease": func(t *testing.T, l *Lane, _ *faultnet.Proxy, leased *atomic.Bool, start agora.Message) {
			leased.Store(false)
			wantCode(t, put(t, l, start), agora.Unavailable)
			leased.Store(true)
		},
		"while the log is away": func(t *testing.T, l *Lane, c *faultnet.Proxy, _ *atomic.Bool, start agora.Message) {
			c.Cut()
			await.True(t, "the connection is lost", func() bool { return !l.b.Connected() })
			l.mu.Lock()
			l.startRecovery(false)
			l.mu.Unlock()
			l.suspend(jslog.ErrSilent)
			wantCode(t, put(t, l, start), agora.Unavailable)
			c.Reset()
			if err := l.Flush(await.Context(t)); err != nil {
				t.Fatalf("Flush: %v", err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			s := testServer(t, 1)
			c := testCable(t, s)
			b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
			var leased atomic.Bool
			leased.Store(true)
			cfg := lane("s1", 1, false)
			cfg.Valid = func() (time.Time, bool) { return time.Now(), leased.Load() }
			l := b.Lane(cfg)
			defer l.Close()
			store(t, l, text("before"))
			start, end := indexed(agora.Start, "s", 0), numbered(1, indexed(agora.End, "s", 2))
			refuse(t, l, c, &leased, start)
			wantCode(t, put(t, l, indexed(agora.Chunk, "s", 1)), agora.Unavailable)
			wantCode(t, put(t, l, end), agora.Unavailable)
			wantCode(t, put(t, l, numbered(2, text("after"))), agora.Unavailable)
			store(t, l, start)
			store(t, l, indexed(agora.Chunk, "s", 1))
			store(t, l, end)
			store(t, l, numbered(2, text("after")))
			if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, []string{"before", "0", "1", "2", "after"}) {
				t.Errorf("got %v", got)
			}
		})
	}
}
