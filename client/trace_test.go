package client

import (
	"context"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

func TestTracesGoOutWithTheirContextAndComeInWithTheirMessage(t *testing.T) {
	const out, in = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", "00-4bf92f3577b34da6a3ce929d0e0e4737-00f067aa0ba902b8-01"
	type key struct{}
	p := newPeer(t)
	c, conn := dial(t, p, Config{Traceparent: func(ctx context.Context) string {
		v, _ := ctx.Value(key{}).(string)
		return v
	}})
	next := receiver(t, c)
	traced := context.WithValue(await.Context(t), key{}, out)
	result := errOf(func() error { return c.Send(traced, "you", raw(`1`)) })
	f := conn.expect("send")
	if f.Traceparent != out {
		t.Errorf("sent with %q, want %q", f.Traceparent, out)
	}
	conn.stored(f)
	if err := result(t); err != nil {
		t.Fatal(err)
	}
	result = errOf(func() error { return c.Send(await.Context(t), "you", raw(`2`)) })
	f = conn.expect("send")
	if f.Traceparent != "" {
		t.Errorf("sent with %q under a context of no trace", f.Traceparent)
	}
	conn.stored(f)
	if err := result(t); err != nil {
		t.Fatal(err)
	}
	conn.raw(`{"type":"message","from":"you","payload":1,"seq":1,"traceparent":"` + in + `"}`)
	if m := next(); m.Traceparent != in {
		t.Errorf("message came with %q, want %q", m.Traceparent, in)
	}
}
