package wire

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// chunkFrame is a send_chunk of 190 bytes, as a streaming client writes them.
var chunkFrame = []byte(`{"type":"send_chunk","to":"agent-2","stream_id":"stream-1","chunk":"` + strings.Repeat("words ", 20) + `"}`)

var chunkMessage = agora.Message{
	Kind: agora.Request, Part: agora.Chunk, Stream: "stream-1", From: "agent-1", N: 7, Session: "s1", Seq: 77 << 8,
	To: agora.ToAgent("default", "agent-2"), Body: []byte(`"` + strings.Repeat("words ", 20) + `"`),
}

func TestDecodingAChunkAllocatesNothing(t *testing.T) {
	var f Frame
	if n := testing.AllocsPerRun(100, func() { must(t, DecodeRequest(chunkFrame, &f, Limits{})) }); n != 0 {
		t.Errorf("DecodeRequest allocates %v times, want 0", n)
	}
	reply := []byte(strings.Replace(string(chunkFrame), "send_chunk", "reply_chunk", 1))
	if n := testing.AllocsPerRun(100, func() { must(t, DecodeRequest(reply, &f, Limits{})) }); n != 0 {
		t.Errorf("DecodeRequest of a reply allocates %v times, want 0", n)
	}
}

func TestAppendingAllocatesNothing(t *testing.T) {
	room := make([]byte, 0, 1024)
	if n := testing.AllocsPerRun(100, func() { AppendMessage(room, &chunkMessage, Delivery{Redelivered: true}) }); n != 0 {
		t.Errorf("AppendMessage allocates %v times, want 0", n)
	}
	var f Frame
	must(t, DecodeRequest(chunkFrame, &f, Limits{}))
	if n := testing.AllocsPerRun(100, func() { f.Append(room) }); n != 0 {
		t.Errorf("Append allocates %v times, want 0", n)
	}
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	var f Frame
	b.ReportAllocs()
	b.SetBytes(int64(len(chunkFrame)))
	for b.Loop() {
		must(b, DecodeRequest(chunkFrame, &f, Limits{}))
	}
}

// sendFrame is a send of a short request, as most are.
var sendFrame = []byte(`{"type": "send", "to": "agent-2", "id": "request-17", "payload": {"action": "query", "text": "` +
	strings.Repeat("words ", 10) + `", "limits": {"count": 12, "all": true}}}`)

// publishFrame is a space.publish of the same size.
var publishFrame = []byte(`{"type": "space.publish", "space": "lobby", "data": {"text": "` +
	strings.Repeat("words ", 10) + `", "kind": "note"}}`)

func BenchmarkDecodeSend(b *testing.B)    { benchmarkDecode(b, sendFrame) }
func BenchmarkDecodePublish(b *testing.B) { benchmarkDecode(b, publishFrame) }

func benchmarkDecode(b *testing.B, frame []byte) {
	var f Frame
	b.ReportAllocs()
	b.SetBytes(int64(len(frame)))
	for b.Loop() {
		must(b, DecodeRequest(frame, &f, Limits{}))
	}
}

func BenchmarkAppendMessageSend(b *testing.B) {
	var f Frame
	must(b, DecodeRequest(sendFrame, &f, Limits{}))
	m := f.Relay()
	m.From, m.N, m.Session, m.Seq = "agent-1", 7, "s1", 77<<8
	room := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		AppendMessage(room, &m, Delivery{})
	}
}

func BenchmarkAppendMessageChunk(b *testing.B) {
	room := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		AppendMessage(room, &chunkMessage, Delivery{})
	}
}

// BenchmarkChunkThrough takes a chunk from the frame of its sender to that of its receiver, as two edges do; what lies between
// them is in the broker's benchmarks.
func BenchmarkChunkThrough(b *testing.B) {
	for _, c := range []struct{ name, words string }{
		{"token", " words"}, {"line", strings.Repeat("words ", 20)}, {"code", strings.Repeat(`\tif x != \"a\" {\n`, 8)}, {"cjk", strings.Repeat("中文字", 20)},
		{"64KiB", strings.Repeat("words, ", 9362)},
	} {
		b.Run(c.name, func(b *testing.B) {
			frame := []byte(`{"type":"send_chunk","to":"agent-2","stream_id":"stream-1","chunk":"` + c.words + `"}`)
			var f Frame
			kept, room := make([]byte, 0, len(frame)), make([]byte, 0, 2*len(frame))
			m := chunkMessage
			b.ReportAllocs()
			b.SetBytes(int64(len(frame)))
			for b.Loop() {
				must(b, DecodeRequest(frame, &f, Limits{}))
				m.Body, m.Media = f.Chunk, ""
				if text, ok := AppendText(kept[:0], f.Chunk); ok {
					m.Body, m.Media = text, agora.MediaText
				}
				AppendMessage(room, &m, Delivery{})
			}
		})
	}
}
