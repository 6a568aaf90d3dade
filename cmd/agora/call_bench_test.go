package main

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
)

// BenchmarkCall is a call of an agent at another edge by somebody without a session, in turns with the same request
// over a WebSocket: the median of each, and how often that of a request goes into that of a call.
func BenchmarkCall(b *testing.B) {
	c := agoratest.Start(b, agoratest.Options{Edges: 2, Redis: true, Node: edge.Config{Heartbeat: time.Minute}})
	ctx, cancel := context.WithCancel(b.Context())
	defer cancel()
	bob := benchClient(b, c, 1, "bob")
	go func() {
		for m, err := range bob.Messages(ctx) {
			if err != nil {
				return
			}
			if err := bob.Reply(ctx, m.From, m.RequestID(), map[string]string{"text": "hi"}); err != nil {
				return
			}
		}
	}()
	anna := benchClient(b, c, 0, "anna")
	who, err := c.Node(0).Authenticate(ctx, edge.Credentials{})
	if err != nil {
		b.Fatal(err)
	}
	var calls, requests []time.Duration
	for b.Loop() {
		begun := time.Now()
		if _, err := anna.Request(ctx, "bob", map[string]string{"text": "hello"}); err != nil {
			b.Fatal(err)
		}
		requests = append(requests, time.Since(begun))
		begun = time.Now()
		benchCall(b, ctx, who)
		calls = append(calls, time.Since(begun))
	}
	b.ReportMetric(0, "ns/op")
	b.ReportMetric(float64(median(calls).Microseconds()), "call-p50-µs")
	b.ReportMetric(float64(median(requests).Microseconds()), "request-p50-µs")
	b.ReportMetric(float64(median(calls))/float64(median(requests)), "call/request")
}

func benchClient(b *testing.B, c *agoratest.Cluster, k int, id string) *client.Client {
	b.Helper()
	a, err := client.Dial(b.Context(), client.Config{URLs: []string{c.URL(k)}, Agent: id})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { a.Close() })
	return a
}

func benchCall(b *testing.B, ctx context.Context, who *edge.Actor) {
	box := call.NewBox(agora.DefaultTenant, "caller", "")
	a, err := who.Call(ctx, "caller", call.Request{Box: box, Message: agora.Message{
		ID: box, To: agora.Address{Agent: "bob"}, Body: []byte(`{"text":"hello","request_id":"` + box + `"}`),
	}})
	if err != nil {
		b.Fatal(err)
	}
	defer a.Close()
	for {
		if _, err := a.Next(ctx); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			b.Fatal(err)
		}
	}
}

func median(all []time.Duration) time.Duration {
	all = slices.Clone(all)
	slices.Sort(all)
	return all[len(all)/2]
}
