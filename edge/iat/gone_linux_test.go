package iat_test

import (
	"net"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// vanish has the system drop all that comes to a connection: to its peer it looks as if the machine were gone.
func vanish(t *testing.T, c net.Conn) {
	t.Helper()
	raw, err := c.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	drop := syscall.SockFilter{Code: syscall.BPF_RET | syscall.BPF_K} // so many bytes of each packet: none
	program := syscall.SockFprog{Len: 1, Filter: &drop}
	var failed syscall.Errno
	err = raw.Control(func(fd uintptr) {
		_, _, failed = syscall.Syscall6(syscall.SYS_SETSOCKOPT, fd, syscall.SOL_SOCKET, syscall.SO_ATTACH_FILTER,
			uintptr(unsafe.Pointer(&program)), unsafe.Sizeof(program), 0)
	})
	if err != nil || failed != 0 {
		t.Fatalf("the connection can't be made to vanish: %v %v", err, failed)
	}
}

func TestAnAgentWhoseMachineIsGoneMakesRoom(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2, Node: edge.Config{Probe: time.Second}}})
	vanish(t, s.stuck(t, 0, "eve"))
	s.tells(t, "eve", 1, 2)
	d := s.downlink(t, 1, "eve")
	d.hears("eve", 1, 2, true)
}
