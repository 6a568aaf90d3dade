package ws_test

import (
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

// BenchmarkIdleAgent reports what an agent that is bound and says nothing
// costs its edge's process, heap and stacks, its subscription in the embedded
// log included. Presence is a process of its own, and the agents are bare
// sockets, which cost this process nothing.
func BenchmarkIdleAgent(b *testing.B) {
	const agents = 2000
	for b.Loop() {
		b.ReportMetric(idleCost(b, agents), "B/agent")
	}
}

// idleCost connects agents that say nothing, and returns what each of them takes.
func idleCost(b testing.TB, agents int) float64 {
	b.Helper()
	c := agoratest.Start(b, agoratest.Options{Edges: 1, Redis: true, Node: edge.Config{
		Heartbeat: time.Hour, Timeout: 2 * time.Hour, Confirm: time.Second,
	}})
	fds := make([]int, 0, agents+1)
	b.Cleanup(func() {
		for _, fd := range fds {
			syscall.Close(fd)
		}
	})
	u, err := url.Parse(c.URL(0))
	if err != nil {
		b.Fatal(err)
	}
	bindBare(b, &fds, u.Host, "first")
	before := inUse()
	for i := range agents {
		bindBare(b, &fds, u.Host, fmt.Sprint("idle-", i))
	}
	return float64(inUse()-before) / float64(agents)
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// bindBare connects an agent by a socket that the runtime knows nothing of,
// and returns when it is registered.
func bindBare(b testing.TB, fds *[]int, host, agent string) {
	b.Helper()
	at, err := net.ResolveTCPAddr("tcp", host)
	if err != nil {
		b.Fatal(err)
	}
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	*fds = append(*fds, fd)
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: at.Port, Addr: [4]byte(at.IP.To4())}); err != nil {
		b.Fatal(err)
	}
	request := fmt.Sprintf("GET /ws?agent_id=%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", agent, host)
	if _, err := syscall.Write(fd, []byte(request)); err != nil {
		b.Fatal(err)
	}
	var got []byte
	for !strings.Contains(string(got), "agent.registered") {
		buf := make([]byte, 2048)
		n, err := syscall.Read(fd, buf)
		if err != nil || n == 0 {
			b.Fatalf("registration of %s: %q, %v", agent, got, err)
		}
		got = append(got, buf[:n]...)
	}
}
