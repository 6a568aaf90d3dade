package ws

import (
	"fmt"
	"net"
	"net/http/httptest"
	"runtime"
	"syscall"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// BenchmarkIdle reports what a connection that says nothing costs the edge's
// process: heap and stacks. The peers are bare sockets, which cost this process nothing.
func BenchmarkIdle(b *testing.B) {
	const connections = 1000
	d, s := serve(b, Config{}, node{heartbeat: time.Hour, timeout: 2 * time.Hour})
	before := inUse()
	b.ResetTimer()
	for range b.N {
		for range connections {
			fd := bareDial(b, s)
			defer syscall.Close(fd)
		}
	}
	b.StopTimer()
	await.True(b, "all are connected", func() bool { return d.Stats().Connections.Load() == int64(connections*b.N) })
	b.ReportMetric(float64(inUse()-before)/float64(connections*b.N), "B/conn")
}

func inUse() int64 {
	var m runtime.MemStats
	runtime.GC()
	runtime.GC()
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc + m.StackInuse)
}

// bareDial upgrades a socket that the runtime knows nothing of.
func bareDial(b testing.TB, s *httptest.Server) int {
	a := s.Listener.Addr().(*net.TCPAddr)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		b.Fatal(err)
	}
	if err := syscall.Connect(fd, &syscall.SockaddrInet4{Port: a.Port, Addr: [4]byte(a.IP.To4())}); err != nil {
		b.Fatal(err)
	}
	request := fmt.Sprintf("GET /ws?token=%s HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n", goodToken)
	if _, err := syscall.Write(fd, []byte(request)); err != nil {
		b.Fatal(err)
	}
	answer := make([]byte, 512)
	if n, err := syscall.Read(fd, answer); err != nil || n < 12 || string(answer[9:12]) != "101" {
		b.Fatalf("upgrade was refused: %q, %v", answer[:max(n, 0)], err)
	}
	return fd
}
