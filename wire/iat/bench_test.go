package iat

import (
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

// chunkEnvelope is a chunk of about 190 bytes, as a streaming sub-agent writes them.
var chunkEnvelope = []byte(`{"header":{"msg_id":"c-17","parent_id":"m-1","type":"chunk","from":"agent-1","to":"agent-2","timestamp":1674480000},` +
	`"metadata":{"trace_id":"t-1","ttl":3},"payload":{"text":"` + strings.Repeat("words ", 4) + `"}}`)

func chunkOf(t testing.TB) agora.Message {
	var e Envelope
	must(t, Decode(chunkEnvelope, &e, Limits{}))
	text, ok := TextBody(e.Payload)
	if !ok {
		t.Fatal("the chunk is no text")
	}
	return agora.Message{
		Kind: agora.Reply, Part: agora.Chunk, From: "agent-1", To: agora.ToAgent("", "agent-2"), Body: text, Media: agora.MediaText,
		Meta: agora.Meta{Dialect: Dialect, Head: e.AppendHead(nil, "agent-1", "")},
	}
}

func TestAChunkThatComesAgainAllocatesItsIDAlone(t *testing.T) {
	var e Envelope
	if n := testing.AllocsPerRun(100, func() { must(t, Decode(chunkEnvelope, &e, Limits{})) }); n > 1 {
		t.Errorf("Decode allocates %v times, want 1", n)
	}
}

func TestAppendingAllocatesNothing(t *testing.T) {
	room := make([]byte, 0, 1024)
	stored := chunkOf(t)
	foreign := stored
	foreign.Meta = agora.Meta{Trace: "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
	d := Delivery{ID: "g-1", Parent: "m-1", Time: time.Unix(1700000000, 0), Redelivered: true, DeadlineMS: 5}
	for name, m := range map[string]*agora.Message{"a chunk of this dialect": &stored, "a chunk of another": &foreign} {
		if n := testing.AllocsPerRun(100, func() { AppendEnvelope(room, m, d) }); n != 0 {
			t.Errorf("appending %s allocates %v times, want 0", name, n)
		}
	}
	var e Envelope
	must(t, Decode(chunkEnvelope, &e, Limits{}))
	if n := testing.AllocsPerRun(100, func() { e.AppendHead(room, "agent-1", "/src"); TextBody(e.Payload) }); n != 0 {
		t.Errorf("AppendHead and TextBody allocate %v times, want 0", n)
	}
}

func BenchmarkDecodeChunk(b *testing.B) {
	var e Envelope
	b.ReportAllocs()
	b.SetBytes(int64(len(chunkEnvelope)))
	for b.Loop() {
		must(b, Decode(chunkEnvelope, &e, Limits{}))
	}
}

func BenchmarkAppendHead(b *testing.B) {
	var e Envelope
	must(b, Decode(chunkEnvelope, &e, Limits{}))
	room := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		e.AppendHead(room, "agent-1", "")
	}
}

func BenchmarkAppendEnvelopeChunk(b *testing.B) {
	room := make([]byte, 0, 1024)
	stored := chunkOf(b)
	foreign := stored
	foreign.Meta = agora.Meta{}
	d := Delivery{ID: "g-1", Parent: "m-1", Time: time.Unix(1700000000, 0), Trace: "t-1"}
	for name, m := range map[string]*agora.Message{"stored": &stored, "foreign": &foreign} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				AppendEnvelope(room, m, d)
			}
		})
	}
}

func TestACloneKeepsNothingOfTheBytes(t *testing.T) {
	for _, from := range []string{"agent-1", `agent-"1`} {
		for _, root := range []string{"", "/src"} {
			var e Envelope
			b := append([]byte(nil), chunkEnvelope...)
			must(t, Decode(b, &e, Limits{}))
			want, payload := string(e.AppendHead(nil, agora.AgentID(from), root)), string(e.Payload)
			if n := e.HeadSize(agora.AgentID(from), root); len(want) > n+1 {
				t.Errorf("a head of %d bytes has room for %d", len(want), n)
			}
			c := e.Clone()
			clear(b)
			if got := string(c.AppendHead(nil, agora.AgentID(from), root)); got != want || string(c.Payload) != payload || c.ID != "c-17" {
				t.Errorf("the clone is %s with %s, want %s with %s", got, c.Payload, want, payload)
			}
		}
	}
}
