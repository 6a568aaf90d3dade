package broker

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

func TestASqueezedInboxKeepsLessAndMissesNothing(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), func(c *Config) { c.InboxBytes = 64 << 10 })
	l := listen(t, b, bob, From{})
	l.quiet(t)
	b.Squeeze(1, 64)
	publish(t, b, "s1", names(0, 50)...)
	await.True(t, "it is behind", func() bool { l.mu.Lock(); defer l.mu.Unlock(); return l.state.lags() })
	if held := l.Held(); held > 1<<10 {
		t.Errorf("it keeps %d bytes, want %d at most", held, 1<<10)
	}
	if got := bodies(l.read(t, 50)); !slices.Equal(got, names(0, 50)) {
		t.Errorf("got %v", got)
	}
	b.Squeeze(64, 64)
	l.quiet(t)
	publish(t, b, "s2", names(50, 60)...)
	await.True(t, "it keeps what comes", func() bool { return l.Held() > 1<<10 })
	if got := bodies(l.read(t, 10)); !slices.Equal(got, names(50, 60)) {
		t.Errorf("then got %v", got)
	}
}

func TestInboxesReadTheLogInTurn(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	publish(t, b, "s1", "one")
	for range inboxesReading { // that many others read already
		b.reads.inboxes <- struct{}{}
	}
	inbox := b.Listen(bob, From{}, func() {})
	defer inbox.Close()
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	if _, err := inbox.Next(ctx, 1<<20); err == nil || !errors.Is(ctx.Err(), context.DeadlineExceeded) {
		t.Errorf("Next out of turn = %v", err)
	}
	<-b.reads.inboxes
	if msgs, err := inbox.Next(t.Context(), 1<<20); err != nil || !slices.Equal(bodies(msgs), []string{"one"}) {
		t.Errorf("Next in turn = %v, %v", bodies(msgs), err)
	}
}
