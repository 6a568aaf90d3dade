//go:build !race

package broker

import (
	"testing"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
)

// The race detector has pools forget things now and then, so this is seen without it.
func TestALiveRecordIsReadWithoutAllocating(t *testing.T) {
	b := testBroker(t, testServer(t, 1), nil)
	in := listen(t, b, bob, From{})
	in.quiet(t)
	m := nats.NewMsg(jslog.Locate(bob, 1).Live)
	parts := make([]agora.Message, 64)
	for k := range parts {
		parts[k] = part(agora.Chunk, "stream-1", "token")
	}
	m.Data = record.Of(record.Origin{Session: "s", ValidAt: time.Now().UnixMilli(), From: "alice"}, parts...)
	seq := in.end.seq
	if n := testing.AllocsPerRun(1000, func() {
		seq++
		in.push(m, seq, seq-1)
		for _, want := range []int{len(parts), 0} { // the second time it has nothing, and keeps nothing
			if ms, err := in.Next(t.Context(), 1<<20); err != nil || len(ms) != want {
				t.Fatalf("Next = %d messages, %v; want %d", len(ms), err, want)
			}
		}
	}); n > 0 {
		t.Errorf("%v allocations, want 0", n)
	}
	if in.reading.scratch != nil {
		t.Error("an inbox that has nothing keeps room for messages")
	}
}
