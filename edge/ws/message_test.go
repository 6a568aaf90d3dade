package ws

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

func TestFramingAMessageAllocatesNothing(t *testing.T) {
	m, dst := chunk(), make([]byte, 0, 4096)
	if n := testing.AllocsPerRun(100, func() { dst = appendMessage(dst[:0], m, wire.Delivery{}) }); n != 0 {
		t.Errorf("appendMessage allocates %v times, want 0", n)
	}
}

func chunk() *agora.Message {
	return &agora.Message{
		Kind: agora.Request, Part: agora.Chunk, Stream: "stream-1", From: "agent-1", Seq: 123456789,
		To: agora.ToAgent(agora.DefaultTenant, "agent-2"), Body: []byte(`"` + strings.Repeat("x", 100) + `"`),
	}
}

func BenchmarkFrameChunk(b *testing.B) {
	m, dst := chunk(), make([]byte, 0, 4096)
	b.ReportAllocs()
	for b.Loop() {
		dst = appendMessage(dst[:0], m, wire.Delivery{})
	}
	b.SetBytes(int64(len(dst)))
}
