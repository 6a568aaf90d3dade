package broker

import (
	"context"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// A listener that names its position while the log is away, as its servers agree on a leader, is answered when the log is back.
func TestAPositionIsJudgedOnceTheLogAnswers(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL, cfg.read = c.Addr(), 50*time.Millisecond })
	at := publish(t, b, "s1", "1", "2")
	c.Cut()
	await.True(t, "the connection is lost", func() bool { return !b.Connected() })
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if _, err := b.Place(ctx, bob, at[0], 0); agora.AsError(err) == nil || agora.AsError(err).Code != agora.Unavailable {
		t.Errorf("Place while the log is away = %v, want UNAVAILABLE", err)
	}
	type answer struct {
		place Place
		err   error
	}
	answers := make(chan answer, 1)
	asked := make(chan struct{})
	go func() {
		close(asked)
		place, err := b.Place(await.Context(t), bob, at[0], 0)
		answers <- answer{place, err}
	}()
	<-asked
	c.Reset()
	if a := await.Recv(t, "an answer", answers); a.place != Own || a.err != nil {
		t.Errorf("Place of a log that is back = %v, %v; want Own", a.place, a.err)
	}
}
