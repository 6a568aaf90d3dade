package soak

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// receiver is an agent that takes what senders send, and answers.
type receiver struct {
	agent
	from []source // by the sender's index
}

// source is what one sender sends to a receiver.
type source struct {
	talk *verify.Track // messages and streams
	asks *verify.Track
	id   string // of the sender
}

// sent is what every payload says.
type sent struct {
	Kind verify.Kind `json:"soak"`
	By   int         `json:"by"` // index of the sender
	N    uint64      `json:"n"`
	At   int64       `json:"at"` // of a reply
}

// body returns the payload of a number.
func body(k verify.Kind, by int, n uint64) []byte {
	return fmt.Appendf(nil, `{"soak":%q, "by":%d, "n":%d, "text":"é😀 %x"}`, k, by, n, n*0x9e3779b97f4a7c15)
}

func parse(payload []byte) (b sent, ok bool) { return b, json.Unmarshal(payload, &b) == nil }

// listen takes messages until ctx ends. Streams are read beside it.
func (p *receiver) listen(ctx context.Context) {
	for m, err := range p.c.Messages(ctx) {
		if err != nil {
			return
		}
		p.take(ctx, m)
	}
}

// take checks a message.
func (p *receiver) take(ctx context.Context, m *client.Message) {
	t := p.run.tally
	b, ok := parse(m.Payload)
	if !ok || b.By < 0 || b.By >= len(p.from) || p.from[b.By].id != m.From {
		t.Violated(verify.Altered, "%s got from %s what no sender sends: %.100s", p.id, m.From, m.Payload)
		if m.Stream {
			p.aside(ctx, nil, m)
		}
		return
	}
	from := p.from[b.By]
	if b.Kind == request {
		load, fresh := from.asks.Arrived(request, b.N, m.Seq)
		if a, ok := load.(*answer); ok && fresh {
			p.run.aside(func() { p.reply(m, a) })
		}
		return
	}
	k := message
	if b.Kind == stream {
		k = stream
	}
	if !slices.Equal(m.Payload, body(k, b.By, b.N)) || m.Stream != (k == stream) {
		t.Violated(verify.Altered, "%s: %s %d came as %.100s", from.talk.Line().Name(), k, b.N, m.Payload)
	}
	load, _ := from.talk.Arrived(k, b.N, m.Seq)
	if f, _ := load.(*verify.Flow); m.Stream {
		p.aside(ctx, f.Begin(p.id, p.gaps), m)
	}
}

// parts is what has chunks: a message, or an event.
type parts interface {
	Next(ctx context.Context) (string, error)
}

// aside reads a stream to its end and checks it, beside the caller; rd is nil where nothing is known of it.
func (a *agent) aside(ctx context.Context, rd *verify.Reading, m parts) {
	a.run.aside(func() { a.read(ctx, rd, m) })
}

// read reads a stream to its end and checks it.
func (a *agent) read(ctx context.Context, rd *verify.Reading, m parts) {
	for {
		text, err := m.Next(ctx)
		switch {
		case rd == nil && err != nil:
			return
		case rd == nil:
		case err == nil:
			rd.Chunk(text)
		case errors.Is(err, context.Canceled):
			rd.Never()
			return
		default:
			rd.Over(err)
			return
		}
	}
}
