package client

import (
	"context"
	"errors"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

func TestTheContextOfAMessageEndsWhenItsSenderGivesUp(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	next := receiver(t, c)
	ended := func(what string, ctx context.Context) {
		t.Helper()
		await.Recv(t, what, ctx.Done())
		if why := context.Cause(ctx); !errors.Is(why, ErrCancelled) {
			t.Errorf("%s: it ends with %v, want %v", what, why, ErrCancelled)
		}
	}
	ask := func(name, more string) *Message {
		t.Helper()
		conn.raw(`{"type":"message","from":"you","payload":{"request_id":"` + name + `"}` + more + `}`)
		return next()
	}

	ctx, free := ask("r-1", "").Context(await.Context(t))
	conn.raw(`{"type":"cancel","from":"you","stream_id":"other"}`)
	conn.raw(`{"type":"cancel","from":"them","stream_id":"r-1"}`)
	conn.raw(`{"type":"cancel","from":"you","stream_id":"r-1"}`)
	ended("a request that is given up", ctx)
	free()

	m := ask("r-2", "")
	conn.raw(`{"type":"cancel","from":"you","stream_id":"r-2"}`)
	ask("r-3", "") // what came before it was dealt with
	ctx, free = m.Context(await.Context(t))
	ended("a request that was given up before anybody asked", ctx)
	free()

	ctx, free = ask("r-2", "").Context(await.Context(t))
	if ctx.Err() != nil {
		t.Error("a request ends with another one of its name, which was given up before")
	}
	free()

	m = ask("r-4", "")
	ctx, free = m.Context(await.Context(t))
	defer free()
	opening := async(func() (*Stream, error) { return m.ReplyStream(await.Context(t), nil) })
	f := conn.expect("reply")
	conn.stored(f)
	opening(t)
	conn.raw(`{"type":"cancel","from":"you","stream_id":"` + f.StreamID + `"}`)
	ended("a request whose streamed reply is given up", ctx)

	ctx, free = ask("r-5", `,"deadline_ms":1`).Context(await.Context(t))
	defer free()
	<-ctx.Done()
	if why := context.Cause(ctx); !errors.Is(why, context.DeadlineExceeded) {
		t.Errorf("behind its deadline it ends with %v", why)
	}
}
