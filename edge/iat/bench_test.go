package iat

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/wire/iat"
)

// chunks returns a pull of chunks of one stream, of this dialect or of the edge's own.
func chunks(b *testing.B, n int, own bool) []edge.Delivery {
	b.Helper()
	m := agora.Message{
		Kind: agora.Reply, Part: agora.Chunk, From: "agent-1", To: agora.ToAgent("", "agent-2"), Stream: "m-1", Media: agora.MediaText,
		Body: []byte(strings.Repeat("words ", 17)), Meta: agora.Meta{Parent: "m-1"},
	}
	if own {
		var e iat.Envelope
		if err := iat.Decode(chunkEnvelope(), &e, iat.Limits{}); err != nil {
			b.Fatal(err)
		}
		m.Meta.Dialect, m.Meta.Head = iat.Dialect, e.AppendHead(nil, "agent-1", "")
	}
	ds := make([]edge.Delivery, n)
	for i := range ds {
		part := m
		part.Seq = uint64(i + 1)
		ds[i] = edge.Delivery{Message: &part}
	}
	return ds
}

func chunkEnvelope() []byte {
	return []byte(`{"header":{"msg_id":"c-17","parent_id":"m-1","type":"chunk","from":"agent-1","to":"agent-2","timestamp":1674480000},` +
		`"metadata":{"ttl":3},"payload":{"text":"` + strings.Repeat("words ", 17) + `"}}`)
}

// BenchmarkEncode is what a chunk costs from a pull to what is written, for each way down. It allocates nothing.
func BenchmarkEncode(b *testing.B) {
	door := &Door{stats: newStats(), now: time.Now}
	for name, line := range map[string]line{"events": &eventLine{}, "frames": &frameLine{}} {
		for dialect, own := range map[string]bool{"iat": true, "agora": false} {
			b.Run(name+"/of "+dialect, func(b *testing.B) {
				const pulled = 64
				ds := chunks(b, pulled, own)
				l := &link{door: door, line: line, streams: map[stream]string{{"agent-1", "m-1"}: "m-1"}}
				var out []byte
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					if i%pulled == 0 {
						out = l.Encode(out[:0], ds, nil)
					}
				}
			})
		}
	}
}

// BenchmarkChunkIn is what a chunk costs from the bytes of a message to what is stored. It allocates its id, and one
// piece of memory for what is kept.
func BenchmarkChunkIn(b *testing.B) {
	s := saying{door: &Door{now: time.Now}, as: "agent-1"}
	var e iat.Envelope
	in := chunkEnvelope()
	b.ReportAllocs()
	b.SetBytes(int64(len(in)))
	for b.Loop() {
		if err := iat.Decode(in, &e, iat.Limits{}); err != nil {
			b.Fatal(err)
		}
		if m := s.message(&e, ""); m.Media != agora.MediaText {
			b.Fatal("the chunk is no text")
		}
	}
}

// BenchmarkSocketRead is what it costs to read a message of a socket while many come.
func BenchmarkSocketRead(b *testing.B) {
	read := make(chan int)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		c, err := upgrader.Upgrade(sharing{w, new(shared)}, r, nil)
		if err != nil {
			return
		}
		defer c.Close()
		n := 0
		for {
			_, m, err := c.NextReader()
			if err != nil {
				break
			}
			in := buffer.Get()
			in.B, err = readUpTo(m, in.B, 1<<20)
			buffer.Put(in)
			if err != nil {
				break
			}
			n++
		}
		read <- n
	}))
	defer server.Close()
	c, r, err := websocket.DefaultDialer.DialContext(b.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), nil)
	if err != nil {
		b.Fatal(err)
	}
	_, _ = io.Copy(io.Discard, r.Body) // there is none
	chunk, err := websocket.NewPreparedMessage(websocket.TextMessage, chunkEnvelope())
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	sent := 0
	for b.Loop() {
		if err := c.WritePreparedMessage(chunk); err != nil {
			b.Fatal(err)
		}
		sent++
	}
	c.Close()
	if n := <-read; n != sent {
		b.Errorf("%d messages were read of %d", n, sent)
	}
}
