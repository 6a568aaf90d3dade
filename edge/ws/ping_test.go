package ws

import (
	"encoding/binary"
	"io"
	"net"
	"net/http/httptest"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/internal/await"
)

// quietConn connects a raw peer, and returns the connection's two ends once nothing continues there.
func quietConn(t testing.TB, d *Door, s *httptest.Server) (*conn, net.Conn) {
	t.Helper()
	cs, peers := connsOf(t, d, s, 1)
	return cs[0], peers[0]
}

// connsOf connects raw peers, and returns both ends.
func connsOf(t testing.TB, d *Door, s *httptest.Server, n int) (cs []*conn, peers []net.Conn) {
	t.Helper()
	known := map[*conn]bool{}
	for range n {
		peer := dial(t, s).NetConn()
		peers = append(peers, peer)
		await.True(t, "it is connected", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			for c := range d.conns {
				if !known[c] {
					known[c] = true
					cs = append(cs, c)
				}
			}
			return len(cs) == len(peers)
		})
	}
	return cs, peers
}

// works reports whether a writer or a verb is at work for a connection.
func works(c *conn) bool {
	_, working := c.out.Held()
	return working
}

// What a tick of the wheel has to tell hundreds of quiet connections goes out before it is over, without a writer for
// each.
func TestAPingToAQuietConnectionIsWrittenAtOnce(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	at := time.Unix(1700000000, 0)
	for k := range uint64(3) {
		c.Notify(edge.Notice{Kind: edge.NoticePing, Data: k, At: at})
		if n, out := d.stats.Writes.Load(), d.stats.FramesOut.Load(); n != int64(k)+1 || out != int64(k)+1 || works(c) {
			t.Fatalf("after %d pings: %d writes, %d frames, a writer runs: %v", k+1, n, out, works(c))
		}
		if op, body := nextFrame(t, peer); op != frame.Ping || binary.BigEndian.Uint64(body) != k {
			t.Fatalf("frame %d %q, want ping %d", op, body, k)
		}
		if op, body := nextFrame(t, peer); op != frame.Text || string(body) != `{"type":"agent.heartbeat","timestamp":1700000000}` {
			t.Fatalf("frame %d %q, want a heartbeat", op, body)
		}
	}
}

// A socket that has no room keeps nobody but its own writer, which continues in the middle of a frame where need be.
func TestAPingThatASocketDoesNotTakeWaitsForRoom(t *testing.T) {
	d, s := serve(t, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	c, peer := quietConn(t, d, s)
	c.socket.(*net.TCPConn).SetWriteBuffer(4 << 10)
	peer.(*net.TCPConn).SetReadBuffer(4 << 10)
	var sent uint64
	full := func() bool { return works(c) }
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

// BenchmarkFrameForEach is one frame for each of 200 connections, by whatever writers there are, until their sockets
// have all of it.
func BenchmarkFrameForEach(b *testing.B) {
	d, s := serve(b, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	cs, peers := connsOf(b, d, s, 200)
	for _, p := range peers {
		go io.Copy(io.Discard, p)
	}
	b.ReportAllocs()
	for b.Loop() {
		for _, c := range cs {
			c.control(frame.Ping, nil)
		}
		for slices.ContainsFunc(cs, works) {
			runtime.Gosched()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*len(cs)), "ns/frame")
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
		one := newConn(new(Door), edge.Admission{})
		if c.bound {
			one.out.Session.Store(new(edge.Session))
		}
		if got := one.idlePong(c.b); got != c.want {
			t.Errorf("%s: %v, want %v", c.about, got, c.want)
		}
	}
}
