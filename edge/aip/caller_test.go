package aip

import (
	"context"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// A session may wait between two messages for as long as it likes; each of them is to come in time.
func TestAMessageHasATimeLimitAndNoSessionHas(t *testing.T) {
	t.Parallel()
	c := &caller{ctx: t.Context(), many: true}
	in := func(d time.Duration) bool { return c.late(agora.Ticks() + int64(d)) }
	if in(time.Hour) {
		t.Error("it is late before a message has begun")
	}
	c.come()
	c.come() // more of it
	if in(messageTime-time.Second) || !in(messageTime+time.Second) {
		t.Errorf("a message is late after 19 s: %v, after 21 s: %v, want the second alone", in(messageTime-time.Second), in(messageTime+time.Second))
	}
	if c.whole(); in(time.Hour) {
		t.Error("it is late after its message")
	}
}

// Anyone who ends a call has its reader return, and nobody else.
func TestWhatEndsACallInterruptsItsReader(t *testing.T) {
	t.Parallel()
	interrupted := 0
	ctx, stop := context.WithCancelCause(t.Context())
	c := &caller{ctx: ctx, stop: stop, interrupt: func() { interrupted++ }}
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	c.whole()
	if c.end(errSlowMessage); interrupted != 0 {
		t.Error("nobody reads, and somebody is interrupted")
	}
	if err := c.begin(); err != errSlowMessage {
		t.Errorf("begin = %v, want %v", err, errSlowMessage)
	}
	if c.end(errSlowMessage); interrupted != 1 {
		t.Errorf("interrupted %d times, want once", interrupted)
	}
}

// What a caller may have sent while its messages are not read on counts.
func TestTheWindowOfACallThatIsNotReadOnCounts(t *testing.T) {
	t.Parallel()
	c := &caller{ctx: t.Context(), many: true}
	want := func(about string, bytes int64, working bool) {
		t.Helper()
		if held, works := c.Held(); held != bytes || works != working {
			t.Errorf("%s: %d bytes, at work: %v, want %d, %v", about, held, works, bytes, working)
		}
	}
	c.reading.Store(true)
	want("it waits for a message", 0, false)
	c.kept.Hold(100)
	c.whole()
	want("a message has just come", 100, false)
	want("it has not been passed on", 100+streamWindow, true)
	c.whole()
	want("another one has come", 100, false)
	c.kept.Free()
	if err := c.begin(); err != nil {
		t.Fatal(err)
	}
	want("it waits for the next", 0, false)
}
