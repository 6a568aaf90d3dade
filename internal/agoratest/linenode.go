package agoratest

import (
	"bufio"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/internal/await"
)

// LineNode is an agent that edges dial: it speaks a protocol of its own, one line for each thing said. Its methods may
// be called at the same time.
type LineNode struct {
	t  testing.TB
	at string

	work sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	listen  net.Listener
	conns   map[net.Conn]string // by the connection that is in use: whose it was said to be
	hellos  int
	got     []string // "<from> <payload>" in the order in which they came
	seen    map[string]bool
	repeats []string // what came twice
	mute    bool
}

// StartLineNode starts an agent that listens on loopback, until the test is over.
func StartLineNode(t testing.TB) *LineNode {
	t.Helper()
	n := &LineNode{t: t, at: "127.0.0.1:0", conns: map[net.Conn]string{}, seen: map[string]bool{}}
	n.Start()
	t.Cleanup(n.Stop)
	return n
}

// Start has it listen, again at the address that it had.
func (n *LineNode) Start() {
	n.t.Helper()
	l, err := net.Listen("tcp", n.at)
	if err != nil {
		n.t.Fatalf("start a node: %v", err)
	}
	n.mu.Lock()
	n.listen, n.at = l, l.Addr().String()
	n.mu.Unlock()
	n.work.Go(func() {
		for {
			c, err := l.Accept()
			if err != nil {
				return
			}
			n.work.Go(func() { n.serve(c) })
		}
	})
}

// Stop is what the process's end looks like to edges. Idempotent.
func (n *LineNode) Stop() {
	n.mu.Lock()
	n.listen.Close()
	for c := range n.conns {
		c.Close()
	}
	n.mu.Unlock()
	n.work.Wait()
}

// Address returns where it listens.
func (n *LineNode) Address() string { return n.at }

// Mute has it answer no pings, or answer them again.
func (n *LineNode) Mute(mute bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.mute = mute
}

// Connections returns how many connections edges have with it.
func (n *LineNode) Connections() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return len(n.conns)
}

// Hellos returns how many sessions edges have begun with it, or gone on with.
func (n *LineNode) Hellos() int {
	n.mu.Lock()
	defer n.mu.Unlock()
	return n.hellos
}

// Got returns what has come, each as "FROM PAYLOAD" and once.
func (n *LineNode) Got() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.got)
}

// Repeated returns what has come more than once, unmarked.
func (n *LineNode) Repeated() []string {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.repeats)
}

// Await waits until exactly so much has come.
func (n *LineNode) Await(want ...string) {
	n.t.Helper()
	await.True(n.t, fmt.Sprintf("the node has %q", want), func() bool { return slices.Equal(n.Got(), want) })
}

// Say says something over every connection.
func (n *LineNode) Say(line string) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for c := range n.conns {
		fmt.Fprintln(c, line) // a connection that is gone is gone
	}
}

// serve reads what an edge says.
func (n *LineNode) serve(c net.Conn) {
	n.mu.Lock()
	n.conns[c] = ""
	n.mu.Unlock()
	defer func() {
		n.mu.Lock()
		defer n.mu.Unlock()
		delete(n.conns, c)
		c.Close()
	}()
	for lines := bufio.NewScanner(c); lines.Scan(); {
		if strings.HasPrefix(lines.Text(), "PRI * HTTP/2") {
			return // of a test in another process, who looks for a server that had this port before
		}
		if err := n.take(c, lines.Text()); err != nil {
			n.t.Errorf("a node was told %q: %v", lines.Text(), err)
		}
	}
}

// take handles one line of an edge's.
func (n *LineNode) take(c net.Conn, line string) error {
	word, rest, _ := strings.Cut(line, " ")
	n.mu.Lock()
	defer n.mu.Unlock()
	switch word {
	case "hello":
		n.hellos++
		n.conns[c] = rest
	case "ping":
		if !n.mute {
			fmt.Fprintln(c, "pong "+rest)
		}
	case "message", "event", "again":
		seq, what, _ := strings.Cut(rest, " ")
		if word == "event" {
			seq = "event " + seq
		}
		if !n.seen[seq] {
			n.seen[seq] = true
			n.got = append(n.got, what)
		} else if word != "again" {
			n.repeats = append(n.repeats, line)
		}
	default:
		return errors.New("no edge says that")
	}
	return nil
}
