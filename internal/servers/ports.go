package servers

import (
	"errors"
	"net"
	"strconv"
	"sync"
	"testing"
)

// Ports returns the first of n loopback ports, one behind the other, that nobody has at the moment, and that no
// connection and no other test process will be given.
func Ports(t testing.TB, n int) (first int) {
	t.Helper()
	for count, last := 0, 0; ; {
		port, err := steadyPort()
		if err != nil {
			t.Fatal(err)
		}
		if port != last+1 {
			count, first = 0, port
		}
		if count, last = count+1, port; count == n {
			return first
		}
	}
}

// Ports of servers that are to have the same one after a restart lie below those that the system gives to connections:
// it might give one away in between. (On Linux those begin at 32768.) A test process takes them in blocks, and holds
// the first port of each block for as long as it lives: nobody else gives away one of that block.
const firstPort, lastPort, portBlock = 18000, 32000, 100

var steady struct {
	mu   sync.Mutex // guards the fields below
	held []net.Listener
	next int // the next port; 0 before the first block
}

// steadyPort returns a loopback port that nobody has at the moment, and that no connection and no other test process
// will be given.
func steadyPort() (int, error) {
	steady.mu.Lock()
	defer steady.mu.Unlock()
	for range lastPort - firstPort {
		if steady.next%portBlock == 0 && !takeBlock() {
			break
		}
		n := steady.next
		steady.next++
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n)))
		if err == nil {
			return n, l.Close()
		}
	}
	return 0, errors.New("servers: no port is free")
}

// takeBlock has steady go on with a block of ports that no other process holds, if there is one. The caller holds its
// lock.
func takeBlock() bool {
	for n := firstPort; n < lastPort; n += portBlock {
		if l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(n))); err == nil {
			steady.held, steady.next = append(steady.held, l), n+1
			return true
		}
	}
	return false
}

// Addr returns the host and port of a loopback port that nobody has at the moment, and that no connection and no other
// test process will be given: a server may be started at it again and again.
func Addr() (string, error) {
	port, err := steadyPort()
	return net.JoinHostPort("127.0.0.1", strconv.Itoa(port)), err
}
