package aip

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

// kibibyte is a message of a session with 1 KiB of text.
var kibibyte = (&Message{
	Sender: "agent-1", Receiver: "agent-2", Session: "5f1d7c9a-3c55", Status: AgentMessage_HOLD_QUEST, ID: "m-17", Content: []Item{{Mode_TEXT, bytes.Repeat([]byte("words, "), 146)}},
}).Append(nil)

func BenchmarkReadEnvelope(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(kibibyte)))
	for b.Loop() {
		_, err := ReadEnvelope(kibibyte)
		must(b, err)
	}
}

// BenchmarkUnmarshal is what reading the envelope spares.
func BenchmarkUnmarshal(b *testing.B) {
	b.ReportAllocs()
	b.SetBytes(int64(len(kibibyte)))
	for b.Loop() {
		must(b, proto.Unmarshal(kibibyte, new(AgentMessage)))
	}
}

func BenchmarkReadQuest(b *testing.B) {
	start := (&Message{Sender: "agent-1", Receiver: "agent-2", Session: "5f1d7c9a-3c55"}).Append(nil)
	var r QuestReader
	_, err := r.Read(start)
	must(b, err)
	b.ReportAllocs()
	b.SetBytes(int64(len(kibibyte)))
	for b.Loop() {
		_, err := r.Read(kibibyte)
		must(b, err)
	}
}

func BenchmarkWriteQuest(b *testing.B) {
	start := agora.Message{Part: agora.Start, From: "agent-1", Stream: "s"}
	for name, chunk := range map[string]agora.Message{
		"text": {Part: agora.Chunk, Body: bytes.Repeat([]byte("words, "), 146), Media: agora.MediaText}, "string": {Part: agora.Chunk, Body: append(append([]byte(`"\u00e9`), bytes.Repeat([]byte("words, "), 146)...), '"')},
	} {
		b.Run(name, func(b *testing.B) {
			w := NewQuestWriter(&start, "agent-2", "", 0)
			_, err := w.Write(&start)
			must(b, err)
			b.ReportAllocs()
			b.SetBytes(int64(len(chunk.Body)))
			for b.Loop() {
				_, err := w.Write(&chunk)
				must(b, err)
			}
		})
	}
}

func BenchmarkPayload(b *testing.B) {
	image := bytes.Repeat([]byte{0, 1, 2, 0xff}, 16<<10)
	for name, items := range map[string][]Item{
		"JSON": {{Mode_TEXT, []byte(`{"rows":[` + string(bytes.Repeat([]byte(`{"n":1,"text":"words"},`), 100)) + `0]}`)}}, "text": {{Mode_TEXT, bytes.Repeat([]byte("words, "), 146)}},
		"64 KiB image": {{Mode_TEXT, []byte("see")}, {Mode_IMAGE, image}},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			b.SetBytes(int64(sizeOf(items)))
			for b.Loop() {
				body, _ := payloadWithin(items, MaxPayload)
				if got := ItemsOf(&agora.Message{Body: body}); len(got) != len(items) {
					b.Fatal(got)
				}
			}
		})
	}
}
