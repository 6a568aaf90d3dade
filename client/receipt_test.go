package client

import (
	"errors"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestAMessageReachesTheTiersThatWereAskedFor(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx := await.Context(t)
	both := SendOptions{Receipts: agora.Delivered | agora.Acked}
	first, err := c.SendAsync(ctx, "a", "x", both)
	if err != nil {
		t.Fatal(err)
	}
	second, err := c.SendAsync(ctx, "a", "y", SendOptions{Receipts: agora.Delivered})
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("send")
	if f.Receipts != agora.Delivered|agora.Acked || first.Reached() != 0 {
		t.Fatalf("asked for %v, reached %v", f.Receipts, first.Reached())
	}
	conn.stored(f)
	if err := first.WaitFor(ctx, agora.Stored); err != nil || first.Reached() != agora.Stored {
		t.Fatalf("%v, reached %v", err, first.Reached())
	}
	conn.stored(conn.expect("send"))
	conn.raw(`{"type":"receipt","to":"a","n":2,"status":"delivered","seq":10}`)
	for _, sent := range []*Pending{first, second} {
		if err := sent.WaitFor(ctx, agora.Delivered); err != nil || sent.Reached() != agora.Delivered {
			t.Fatalf("%v, reached %v", err, sent.Reached())
		}
	}
	if err := second.WaitFor(ctx, agora.Acked); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("WaitFor = %v, want INVALID_REQUEST", err)
	}
	conn.raw(`{"type":"receipt","to":"a","n":1,"status":"acked","seq":20}`)
	if err := first.WaitFor(ctx, agora.Acked); err != nil || first.Reached() != agora.Acked {
		t.Fatalf("%v, reached %v", err, first.Reached())
	}
}

func TestNoReceiptIsWaitedForOnceTheSessionIsOver(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx := await.Context(t)
	sent, err := c.SendAsync(ctx, "a", "x", SendOptions{Receipts: agora.Acked})
	if err != nil {
		t.Fatal(err)
	}
	conn.stored(conn.expect("send"))
	if err := sent.Wait(ctx); err != nil {
		t.Fatal(err)
	}
	conn.cut()
	conn = p.accept()
	conn.register(false) // a new session
	if err := sent.WaitFor(ctx, agora.Acked); !errors.Is(err, ErrUnknown) || sent.Reached() != agora.Stored {
		t.Fatalf("WaitFor = %v, reached %v", err, sent.Reached())
	}
}

func TestARefusedMessageReachesNothing(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx := await.Context(t)
	sent, err := c.SendAsync(ctx, "a", "x", SendOptions{Receipts: agora.Acked})
	if err != nil {
		t.Fatal(err)
	}
	f := conn.expect("send")
	conn.raw(`{"type":"error","code":"AGENT_NOT_FOUND","message":"m","request_id":"` + f.ID + `"}`)
	if err := sent.WaitFor(ctx, agora.Acked); agora.AsError(err).Code != agora.AgentNotFound || sent.Reached() != 0 {
		t.Fatalf("WaitFor = %v, reached %v", err, sent.Reached())
	}
}

func TestAReceivedMessageIsAcknowledgedWhenTheProgramSaysSo(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx := await.Context(t)
	var got []*Message
	for _, raw := range []string{`{"type":"message","from":"a","payload":1,"seq":10}`, `{"type":"message","from":"a","payload":2,"seq":20}`} {
		conn.raw(raw)
		m, err := c.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, m)
	}
	got[1].Ack() // the first is not done with
	got[0].Ack()
	got[0].Ack()
	conn.acked("", 20)
}

func TestNoReceiptIsWaitedForOfWhatItsReceiverCanNotTake(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	ctx := await.Context(t)
	var sent [2]*Pending
	for i := range sent {
		var err error
		if sent[i], err = c.SendAsync(ctx, "a", "x", SendOptions{Receipts: agora.Acked}); err != nil {
			t.Fatal(err)
		}
		conn.stored(conn.expect("send"))
		if err := sent[i].Wait(ctx); err != nil {
			t.Fatal(err)
		}
	}
	conn.raw(`{"type":"error","code":"MESSAGE_TOO_LARGE","message":"no","to":"a","n":1,"seq":256}`)
	conn.raw(`{"type":"receipt","to":"a","n":2,"status":"acked","seq":512}`)
	if err := sent[1].WaitFor(ctx, agora.Acked); err != nil {
		t.Errorf("the second one: %v", err)
	}
	if err := sent[0].WaitFor(ctx, agora.Acked); agora.AsError(err).Code != agora.MessageTooLarge {
		t.Errorf("the first one: %v, want MESSAGE_TOO_LARGE", err)
	}
	conn.acked("", 512)
}

func TestTheLargestFrameIsSaidAtRegistration(t *testing.T) {
	t.Parallel()
	p := newPeer(t)
	dialled := async(func() (*Client, error) {
		return Dial(await.Context(t), Config{URLs: []string{p.url}, Agent: "me", MaxFrame: 10_000})
	})
	conn := p.accept()
	if f := conn.register(false); f.MaxFrame != 10_000 {
		t.Errorf("max_frame = %d, want 10000", f.MaxFrame)
	}
	c := dialled(t)
	defer c.Close()
	conn.raw(`{"type":"message","from":"a","payload":"` + strings.Repeat("x", 10_000) + `"}`)
	if err := conn.closed(); err == nil || !strings.Contains(err.Error(), "1009") {
		t.Errorf("the connection ends with %v, want 1009", err)
	}
}

func TestWithoutABoundFramesAreTakenThatAreLargerThanAnEdgeSends(t *testing.T) {
	if limitsFrame := 1 << 20; maxAnswer < limitsFrame {
		t.Errorf("frames of %d bytes are taken, less than the default of limits.frame", maxAnswer)
	}
}
