package client

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

func TestSendReturnsWhatTheClusterAnswers(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	cases := []struct {
		name   string
		answer func(f wire.Frame) wire.Frame
		want   agora.Code
	}{
		{"cumulative receipt", func(f wire.Frame) wire.Frame {
			return wire.Frame{Type: "receipt", To: f.To, N: f.N, Status: "stored"}
		}, ""},
		{"receipt by id", func(f wire.Frame) wire.Frame {
			return wire.Frame{Type: "receipt", RequestID: f.ID, Seq: 99, Status: "stored"}
		}, ""},
		{"refused by id", func(f wire.Frame) wire.Frame {
			return wire.Frame{Type: "error", Code: "AGENT_NOT_FOUND", Message: "m", To: f.To, RequestID: f.ID}
		}, agora.AgentNotFound},
		{"refused by number", func(f wire.Frame) wire.Frame {
			return wire.Frame{Type: "error", Code: "RATE_LIMITED", Message: "m", To: f.To, N: f.N}
		}, agora.RateLimited},
		{"refused without either", func(f wire.Frame) wire.Frame {
			return wire.Frame{Type: "error", Code: "UNAVAILABLE", Message: "m", To: f.To}
		}, agora.Unavailable},
		{"too large to look into", func(wire.Frame) wire.Frame {
			return wire.Frame{Type: "error", Code: "MESSAGE_TOO_LARGE", Message: "m"}
		}, agora.MessageTooLarge},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			result := errOf(func() error { return c.Send(await.Context(t), "you", map[string]int{"x": 1}) })
			f := conn.expect("send")
			if string(f.Payload) != `{"x":1}` {
				t.Fatalf("payload %s", f.Payload)
			}
			conn.send(tc.answer(f))
			err := result(t)
			if tc.want == "" && err != nil || tc.want != "" && agora.AsError(err).Code != tc.want {
				t.Fatalf("Send = %v, want %q", err, tc.want)
			}
		})
	}
}

func TestPayloadsGoOutByteForByte(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	const odd = `{ "b":1e2, "a":"\u00e9<&>" , "b2":[ ] }`
	if _, err := c.SendAsync(await.Context(t), "you", raw(odd)); err != nil {
		t.Fatal(err)
	}
	if f := conn.expect("send"); string(f.Payload) != odd {
		t.Fatalf("payload %s, want %s", f.Payload, odd)
	}
	for _, bad := range []string{`{"a":}`, "\"\xff\"", `{} {}`} {
		if err := c.Send(await.Context(t), "you", raw(bad)); agora.AsError(err).Code != agora.InvalidRequest {
			t.Fatalf("Send(%q) = %v, want INVALID_REQUEST", bad, err)
		}
	}
}

func TestSendBlocksWhileTooMuchIsUnderWay(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{MaxPending: 1000})
	sendAll(t, c, 3)
	result := errOf(func() error { _, err := c.SendAsync(await.Context(t), "you", raw(`"fourth"`)); return err })
	for range 3 {
		conn.expect("send")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := c.SendAsync(ctx, "you", nil); !errors.Is(err, context.Canceled) {
		t.Fatalf("SendAsync = %v, want it to block until its context ends", err)
	}
	conn.send(wire.Frame{Type: "receipt", To: "you", N: 1, Status: "stored"})
	if f := conn.expect("send"); string(f.Payload) != `"fourth"` {
		t.Fatalf("client sent %s", f.Append(nil))
	}
	if err := result(t); err != nil {
		t.Fatal(err)
	}
}

func TestStreamCarriesRunesThatWritesCut(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	text := "aé😀\n\"\x01"
	for i := range len(text) {
		if n, err := s.Write([]byte{text[i]}); n != 1 || err != nil {
			t.Fatalf("Write = %d, %v", n, err)
		}
	}
	if _, err := s.Write([]byte{0xff}); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("Write of no UTF-8 = %v", err)
	}
	s.WriteString("")
	s.Write([]byte(strings.Repeat("é", maxChunk)))
	closed := errOf(s.Close)
	var got []string
	f := conn.next()
	for ; f.Type == "send_chunk"; f = conn.next() {
		got = append(got, rawjson.Unquote(f.Chunk))
	}
	conn.stored(f)
	if err := closed(t); err != nil {
		t.Fatal(err)
	}
	joined := strings.Join(got, "|")
	if want := "a|é|😀|\n|\"|\x01||" + strings.Repeat("é", maxChunk/2) + "|" + strings.Repeat("é", maxChunk/2); joined != want {
		t.Fatalf("chunks %.60q…, want %.60q…", joined, want)
	}
}

func TestCloseOfAStreamThatEndsInsideARuneCancelsIt(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	open := async(func() (*Stream, error) { return c.OpenStream(await.Context(t), "you", nil) })
	conn.stored(conn.expect("send"))
	s := open(t)
	s.Write([]byte("é")[:1])
	if err := s.Close(); agora.AsError(err).Code != agora.InvalidRequest {
		t.Fatalf("Close = %v, want INVALID_REQUEST", err)
	}
	conn.expect("cancel")
}

func TestStreamIsCancelledByEitherSideAndByItsContext(t *testing.T) {
	ways := map[string]func(s *Stream, conn *peerConn, cancel func()){
		"its writer":  func(s *Stream, _ *peerConn, _ func()) { s.Cancel() },
		"its context": func(_ *Stream, _ *peerConn, cancel func()) { cancel() },
		"its receiver": func(s *Stream, conn *peerConn, _ func()) {
			conn.send(wire.Frame{Type: "cancel", From: "you", StreamID: s.ID(), Seq: 5})
		},
		"the cluster": func(s *Stream, conn *peerConn, _ func()) {
			conn.send(wire.Frame{Type: "error", Code: "UNAVAILABLE", Message: "m", To: "you", StreamID: s.ID()})
		},
	}
	for name, cancelBy := range ways {
		t.Run(name, func(t *testing.T) {
			p := newPeer(t)
			c, conn := dial(t, p, Config{})
			ctx, cancel := context.WithCancel(await.Context(t))
			defer cancel()
			open := async(func() (*Stream, error) { return c.OpenStream(ctx, "you", nil) })
			conn.stored(conn.expect("send"))
			s := open(t)
			cancelBy(s, conn, cancel)
			until(t, func() bool { _, err := s.WriteString("x"); return err != nil })
			if err := s.Close(); err == nil {
				t.Fatal("Close of a cancelled stream = nil")
			}
			told := name == "its writer" || name == "its context"
			for told {
				f := conn.next()
				if f.Type == "cancel" {
					break
				}
				if f.Type != "send_chunk" {
					t.Fatalf("client sent %s", f.Append(nil))
				}
			}
		})
	}
}

func TestOpenStreamToNobodyFails(t *testing.T) {
	p := newPeer(t)
	c, conn := dial(t, p, Config{})
	result := errOf(func() error { _, err := c.OpenStream(await.Context(t), "you", nil); return err })
	f := conn.expect("send")
	conn.send(wire.Frame{Type: "error", Code: "AGENT_NOT_FOUND", Message: "m", To: f.To, StreamID: f.StreamID})
	if err := result(t); agora.AsError(err).Code != agora.AgentNotFound {
		t.Fatalf("OpenStream = %v, want AGENT_NOT_FOUND", err)
	}
}
