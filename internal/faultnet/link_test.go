package faultnet

import (
	"errors"
	"io"
	"net"
	"os"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// pair returns both ends of a connection, the first of them on a link.
func pair(t *testing.T, l *Link) (near, far net.Conn) {
	t.Helper()
	at, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	if near, err = l.Dial("tcp", at.Addr().String()); err != nil {
		t.Fatal(err)
	}
	if far, err = at.Accept(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close(); far.Close() })
	_ = far.SetReadDeadline(time.Now().Add(await.Long))
	return near, far
}

// hears wants exactly this to come.
func hears(t *testing.T, c net.Conn, want string) {
	t.Helper()
	b := make([]byte, len(want))
	if _, err := io.ReadFull(c, b); err != nil || string(b) != want {
		t.Fatalf("heard %q, %v, want %q", b, err, want)
	}
}

// silent wants nothing to come for a moment.
func silent(t *testing.T, c net.Conn) {
	t.Helper()
	_ = c.SetReadDeadline(time.Now().Add(20 * time.Millisecond))
	if n, err := c.Read(make([]byte, 1)); n > 0 || !errors.Is(err, os.ErrDeadlineExceeded) {
		t.Fatalf("heard %d bytes, %v, want nothing", n, err)
	}
	_ = c.SetReadDeadline(time.Now().Add(await.Long))
}

func TestWhatIsLateArrivesThoughItsWriterHasGone(t *testing.T) {
	for name, leave := range map[string]func(*Link, net.Conn){
		"closed":   func(_ *Link, c net.Conn) { c.Close() },
		"stranded": func(l *Link, _ net.Conn) { l.Strand() },
	} {
		t.Run(name, func(t *testing.T) {
			l := New()
			near, far := pair(t, l)
			io.WriteString(near, "now ")
			hears(t, far, "now ")
			l.Delay(true)
			_ = near.SetWriteDeadline(time.Now()) // of what was taken at once
			io.WriteString(near, "late ")
			io.WriteString(near, "too")
			leave(l, near)
			if n := l.UnderWay(); n != len("late too") {
				t.Errorf("%d bytes are under way", n)
			}
			if _, err := near.Write([]byte("x")); !errors.Is(err, ErrCut) {
				t.Errorf("written after its end: %v, want %v", err, ErrCut)
			}
			silent(t, far)
			l.Delay(false)
			hears(t, far, "late too")
			if n, err := far.Read(make([]byte, 1)); err != io.EOF {
				t.Errorf("then %d bytes, %v, want its end", n, err)
			}
			if n := l.UnderWay(); n != 0 {
				t.Errorf("%d bytes are still under way", n)
			}
		})
	}
}

func TestACutLosesWhatIsLateAndRefusesUntilMended(t *testing.T) {
	l := New()
	near, far := pair(t, l)
	l.Delay(true)
	io.WriteString(near, "lost")
	l.Cut()
	if b, _ := io.ReadAll(far); len(b) > 0 {
		t.Errorf("heard %q of what was cut", b)
	}
	if _, err := l.Dial("tcp", far.LocalAddr().String()); !errors.Is(err, ErrCut) {
		t.Errorf("dialled over a link that is cut: %v", err)
	}
	if l.Cuts() != 1 || l.Opened() != 1 {
		t.Errorf("%d opened, %d cut, want one", l.Opened(), l.Cuts())
	}
	l.Mend()
	near, far = pair(t, l)
	io.WriteString(near, "well")
	hears(t, far, "well")
}

func TestWhoeverIsHeldGoesOnOrIsCut(t *testing.T) {
	l := New()
	near, far := pair(t, l)
	l.HoldReads(true)
	l.HoldWrites(true)
	io.WriteString(far, "to")
	silent(t, near)
	wrote := make(chan error)
	go func() { _, err := io.WriteString(near, "from"); wrote <- err }()
	silent(t, far)
	l.HoldReads(false)
	l.HoldWrites(false)
	hears(t, near, "to")
	hears(t, far, "from")
	if err := await.Recv(t, "the writer goes on", wrote); err != nil {
		t.Errorf("held and let go: %v", err)
	}

	l.HoldWrites(true)
	go func() { _, err := io.WriteString(near, "x"); wrote <- err }()
	l.Cut()
	if err := await.Recv(t, "the writer is cut", wrote); !errors.Is(err, ErrCut) {
		t.Errorf("held and cut: %v, want %v", err, ErrCut)
	}
}
