package ws

import (
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/await"
)

// quietConn connects a raw peer, and returns the connection's two ends once nothing goes on there.
func quietConn(t testing.TB, d *Door, s *httptest.Server) (*conn, net.Conn) {
	t.Helper()
	cs, peers := connsOf(t, d, s, 1)
	return cs[0], peers[0]
}

// What a tick of the wheel has to tell hundreds of quiet connections goes out before it is over, without a writer for each.
func TestAPingToAQuietConnectionIsWrittenAtOnce(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	at := time.Unix(1700000000, 0)
	for k := range uint64(3) {
		c.Notify(edge.Notice{Kind: edge.NoticePing, Data: k, At: at})
		if n, out := d.stats.Writes.Load(), d.stats.FramesOut.Load(); n != int64(k)+1 || out != int64(k)+1 || c.out.writing {
			t.Fatalf("after %d pings: %d writes, %d frames, a writer runs: %v", k+1, n, out, c.out.writing)
		}
		if op, body := nextFrame(t, peer); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d", op, body, k)
		}
		if op, body := nextFrame(t, peer); op != frame.Text || string(body) != `{"type":"agent.heartbeat","timestamp":1700000000}` {
			t.Fatalf("frame %d %q, want a heartbeat", op, body)
		}
	}
}

// A socket that has no room keeps nobody but its own writer, which goes on in the middle of a frame where need be.
func TestAPingThatASocketDoesNotTakeWaitsForRoom(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	c.socket.(*net.TCPConn).SetWriteBuffer(4 << 10)
	peer.(*net.TCPConn).SetReadBuffer(4 << 10)
	var sent uint64
	full := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.out.writing
	}
	for ; !full() && sent < 1e7; sent++ {
		c.Notify(edge.Notice{Kind: edge.NoticePing, Data: sent})
	}
	for range 10 { // behind what waits
		c.Notify(edge.Notice{Kind: edge.NoticePing, Data: sent})
		sent++
	}
	if !full() {
		t.Fatalf("after %d pings no writer waits", sent)
	}
	for k := range sent {
		if op, body := nextFrame(t, peer); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d of %d", op, body, k, sent)
		}
	}
	await.True(t, "the writer has ended", func() bool { return !full() })
}

func TestWhatAPingLeavesGoesBeforeWhatCameUpMeanwhile(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	if !c.out.seize() || c.out.seize() {
		t.Fatal("a quiet connection has one writer")
	}
	c.out.control(frame.Ping, []byte("second"))
	c.out.release(frame.AppendControl(nil, frame.Ping, []byte("first")), false)
	for _, want := range []string{"first", "second"} {
		if op, body := nextFrame(t, peer); op != frame.Ping || string(body) != want {
			t.Fatalf("frame %d %q, want %q", op, body, want)
		}
	}
}

// What binding an agent took would else be kept of each that says nothing after it: nearly a tenth of what an idle one costs.
func TestAConnectionAtRestKeepsNothingOfWhatItDid(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	if !c.enter() || !c.out.seize() { // a verb runs, and so does a writer
		t.Fatal("a quiet connection is at work")
	}
	c.context()
	c.out.control(frame.Ping, nil)
	c.door.writers.start(c)
	nextFrame(t, peer)
	writing := func() bool {
		c.mu.Lock()
		defer c.mu.Unlock()
		return c.out.writing
	}
	await.True(t, "the writer has ended", func() bool { return !writing() })
	if c.run.Load() == nil {
		t.Fatal("a verb that runs could not be told that the socket is gone")
	}
	c.out.seize()
	c.leave()
	c.rest()
	if c.run.Load() == nil {
		t.Fatal("a writer that runs could not be told that the socket is gone")
	}
	c.door.writers.start(c)
	await.True(t, "what the verb ran under is let go of", func() bool { return c.run.Load() == nil })
	c.context() // of a delivery
	c.Notify(edge.Notice{Kind: edge.NoticePing})
	if c.run.Load() != nil {
		t.Fatal("what a delivery took is kept after a ping")
	}
}

// nextFrame reads a short frame as a peer gets it.
func nextFrame(t testing.TB, peer net.Conn) (frame.Op, []byte) {
	t.Helper()
	peer.SetReadDeadline(time.Now().Add(await.Long))
	head := make([]byte, 2)
	if _, err := io.ReadFull(peer, head); err != nil {
		t.Fatal(err)
	}
	body := make([]byte, head[1])
	if _, err := io.ReadFull(peer, body); err != nil {
		t.Fatal(err)
	}
	return frame.Op(head[0] & 0xf), body
}

func TestOnlyAWholePongThatSaysNoMoreIsTakenForAnIdleOne(t *testing.T) {
	data := binary.BigEndian.AppendUint64(nil, 7)
	probe := binary.BigEndian.AppendUint64(nil, 7|1<<63)
	pong := frame.Final | byte(frame.Pong)
	for _, c := range []struct {
		about string
		b     []byte
		bound bool
		want  bool
	}{
		{"a pong", masked(pong, string(data)), true, true},
		{"of one who has not said who it is", masked(pong, string(data)), false, false},
		{"the answer to a probe", masked(pong, string(probe)), true, false},
		{"a pong under a mask", []byte{pong, 0x88, 0x80, 0, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 7}, true, true},
		{"the answer to a probe under it", []byte{pong, 0x88, 0x80, 0, 0, 0, 0, 0, 0, 0, 0x80, 0, 0, 7}, true, false},
		{"a part of one", masked(pong, string(data))[:13], true, false},
		{"without data", masked(pong, ""), true, false},
		{"another's data", masked(pong, "7 bytes"), true, false},
		{"a ping", masked(frame.Final|byte(frame.Ping), string(data)), true, false},
		{"a text", masked(frame.Final|byte(frame.Text), string(data)), true, false},
		{"a fragment", masked(byte(frame.Pong), string(data)), true, false},
		{"unmasked", slices.Concat([]byte{pong, 8}, data, data[:4]), true, false},
		{"nothing", nil, true, false},
	} {
		one := newConn(nil, edge.Admission{})
		if c.bound {
			one.session.Store(new(edge.Session))
		}
		if got := one.in.idlePong(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.about, got, c.want)
		}
	}
}
