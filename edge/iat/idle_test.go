package iat_test

import (
	"encoding/binary"
	"fmt"
	"net"
	"net/url"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// BenchmarkIdleDownlink reports what a downlink that says nothing costs its edge's process, heap and stacks, its
// subscription in the embedded log included. Presence is a process of its own, and the agents are bare sockets, which
// cost this process nothing.
func BenchmarkIdleDownlink(b *testing.B) {
	for _, shared := range []bool{false, true} {
		b.Run(fmt.Sprintf("shared=%t", shared), func(b *testing.B) {
			for b.Loop() {
				b.ReportMetric(idleDownlinkCost(b, 2000, shared), "B/downlink")
			}
		})
	}
}

// sharing is how many downlinks share a connection over HTTP/2.
const sharing = 100

// idleDownlinkCost opens downlinks that say nothing, each over a connection of HTTP/1.1 or many over one of HTTP/2, and
// returns what each takes once it has been asked for a sign of life.
func idleDownlinkCost(t testing.TB, downlinks int, shared bool) float64 {
	t.Helper()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Redis: true, Node: edge.Config{
		Heartbeat: 5 * time.Second, Timeout: 2 * time.Hour, Confirm: time.Second,
	}}})
	u, err := url.Parse(s.HTTP(0))
	if err != nil {
		t.Fatal(err)
	}
	dial, each := bareDownlink, 1
	if shared {
		dial, each = bareShared, sharing
	}
	dial(t, u.Host, []string{"first"})
	before := inUse()
	var all []*bareSocket
	for i := 0; i < downlinks; i += each {
		var agents []string
		for k := range each {
			agents = append(agents, fmt.Sprint("idle-", i+k))
		}
		all = append(all, dial(t, u.Host, agents))
	}
	for _, s := range all {
		s.until(":\n\n", each)
		s.got = nil
	}
	return float64(inUse()-before) / float64(downlinks)
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// bareSocket is a socket that the runtime knows nothing of.
type bareSocket struct {
	t   testing.TB
	fd  int
	got []byte
}

func bareDial(t testing.TB, host string) *bareSocket {
	t.Helper()
	at, err := net.ResolveTCPAddr("tcp", host)
	if err != nil {
		t.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { syscall.Close(fd) })
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
		t.Fatal(err)
	}
	return &bareSocket{t: t, fd: fd}
}

func (s *bareSocket) write(b []byte) {
	if _, err := syscall.Write(s.fd, b); err != nil {
		s.t.Fatal(err)
	}
}

// until reads until a text has come so many times.
func (s *bareSocket) until(text string, times int) {
	for strings.Count(string(s.got), text) < times {
		b := make([]byte, 4096)
		n, err := syscall.Read(s.fd, b)
		if err != nil || n <= 0 {
			s.t.Fatalf("%d of %q came, want %d: %v, %q", strings.Count(string(s.got), text), text, times, err, s.got)
		}
		s.got = append(s.got, b[:n]...)
	}
}

// bareDownlink opens the downlink of an agent over HTTP/1.1.
func bareDownlink(t testing.TB, host string, agents []string) *bareSocket {
	s := bareDial(t, host)
	s.write([]byte("GET " + downlinkOf(agents[0]) + " HTTP/1.1\r\nHost: " + host + "\r\n\r\n"))
	s.until("retry: 1000", 1)
	return s
}

// bareShared opens the downlinks of agents over one connection of HTTP/2.
func bareShared(t testing.TB, host string, agents []string) *bareSocket {
	s := bareDial(t, host)
	const headers, settings = 1, 4
	s.write(frame2([]byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"), settings, 0, 0, nil))
	for i, a := range agents {
		var h []byte
		for _, f := range [][2]string{{":method", "GET"}, {":scheme", "http"}, {":authority", host}, {":path", downlinkOf(a)}} {
			h = append(append(append(h, 0, byte(len(f[0]))), f[0]...), byte(len(f[1])))
			h = append(h, f[1]...)
		}
		const endStream, endHeaders = 1, 4
		s.write(frame2(nil, headers, endStream|endHeaders, uint32(2*i+1), h))
		s.until("retry: 1000", i+1)
	}
	return s
}

func frame2(dst []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	return append(binary.BigEndian.AppendUint32(dst, stream), payload...)
}
