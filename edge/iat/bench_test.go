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

// nowhere is a sink's other half: what would be written to a socket is thrown away.
type nowhere struct{ sink }

func (nowhere) write([]byte) error { return nil }

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

// BenchmarkCourier is what a chunk costs from a pull to what is written, for each way down. It allocates nothing.
func BenchmarkCourier(b *testing.B) {
	door := &Door{stats: newStats(), now: time.Now}
	var out int64
	for name, s := range map[string]sink{"events": &eventSink{}, "frames": &frameSink{door: door, out: &out}} {
		for dialect, own := range map[string]bool{"iat": true, "agora": false} {
			b.Run(name+"/of "+dialect, func(b *testing.B) {
				const pulled = 64
				ds := chunks(b, pulled, own)
				c := &courier{door: door, link: newLink(0), sink: nowhere{s}, now: time.Now(), streams: map[stream]string{{"agent-1", "m-1"}: "m-1"}}
				b.ReportAllocs()
				for i := 0; b.Loop(); i++ {
					c.deliver(b.Context(), &ds[i%pulled])
					if i%pulled == pulled-1 {
						if err := c.flush(); err != nil {
							b.Fatal(err)
						}
					}
				}
			})
		}
	}
}

// BenchmarkLink is what it costs to wake a downlink that is woken already, and to take that.
func BenchmarkLink(b *testing.B) {
	l := newLink(0)
	b.ReportAllocs()
	for b.Loop() {
		l.Wake()
		l.Wake()
		<-l.signal
		l.take()
	}
}

// BenchmarkChunkIn is what a chunk costs from the bytes of a message to what is stored. It allocates its id, and one piece of memory for what is kept.
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
		c, err := upgrader.Upgrade(batching{w}, r, nil)
		if err != nil || flush(c, nil) != nil {
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
