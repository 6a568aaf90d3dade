package admission

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/turns"
)

// pendingFrom is one end of a pipe that comes from an address.
type pendingFrom struct {
	net.Conn
	at *net.TCPAddr
}

func (c pendingFrom) RemoteAddr() net.Addr { return c.at }

// port has connections pending.
type port struct {
	t *testing.T
	*PendingConns
	far []net.Conn
}

func newPort(t *testing.T, cfg PendingConnsConfig) *port {
	return &port{t: t, PendingConns: NewPendingConns(nil, cfg)}
}

// connect enters a connection from an address.
func (p *port) connect(from string) (*PendingConn, error) {
	far, near := net.Pipe()
	p.t.Cleanup(func() { far.Close(); near.Close() })
	p.far = append(p.far, far)
	return p.Enter(p.t.Context(), pendingFrom{near, net.TCPAddrFromAddrPort(netip.AddrPortFrom(netip.MustParseAddr(from), 4711))})
}

func (p *port) must(from string) *PendingConn {
	p.t.Helper()
	c, err := p.connect(from)
	if err != nil {
		p.t.Fatal(err)
	}
	return c
}

// open reports which connections are open.
func open(conns ...*PendingConn) (s string) {
	for _, c := range conns {
		c.SetReadDeadline(time.Now().Add(1))
		_, err := c.Conn.Read(make([]byte, 1))
		c.SetReadDeadline(time.Time{})
		if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
			s += "o"
		} else {
			s += "x"
		}
	}
	return s
}

func TestTheConnectionThatIsPendingLongestMakesRoom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, PendingConnsConfig{Places: 3})
		var all []*PendingConn
		for i := range 3 {
			all = append(all, p.must(fmt.Sprintf("192.0.2.%d", i)))
		}
		all[0].Admitted()
		all = append(all, p.must("192.0.2.3")) // has the place of the first
		begun := time.Now()
		all = append(all, p.must("192.0.2.4"))
		if waited := time.Since(begun); waited != pendingPatience {
			t.Errorf("a newcomer waited for %v, want %v: all have just come", waited, pendingPatience)
		}
		if got := open(all...); got != "oxooo" || p.Pending() != 3 || p.Evicted() != 1 {
			t.Errorf("open: %s, %d pending, %d evicted, want oxooo, 3 and 1", got, p.Pending(), p.Evicted())
		}
		all[0].Again()
		if got := open(all...); got != "oxxoo" {
			t.Errorf("open: %s, want oxxoo: one that is idle needs a place as well", got)
		}
		for _, c := range all {
			c.Close()
		}
		if p.Pending() != 0 || len(p.addresses) != 0 {
			t.Errorf("%d are pending, of %d addresses, after all were closed", p.Pending(), len(p.addresses))
		}
	})
}

func TestAnAddressWithMoreThanItsPartOfThePlacesGivesWayFirst(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, PendingConnsConfig{Places: 8})
		honest := p.must("198.51.100.1")
		var flood []*PendingConn
		for range 7 {
			flood = append(flood, p.must("192.0.2.1"))
		}
		begun := time.Now()
		flood = append(flood, p.must("192.0.2.1"))
		if waited := time.Since(begun); waited != pendingPatience/4 || open(honest) != "o" || open(flood[0]) != "x" {
			t.Errorf("after %v the other address is %s and the oldest of the flood %s, want %v, o and x", waited, open(honest), open(flood[0]), pendingPatience/4)
		}
	})
}

func TestPendingConnectionsOfAnAddressAreLimited(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		limits := NewConnLimiter(NewLiveLimits(Limits{PerIP: 2, HandshakesPerIP: 1}))
		proxy := netip.MustParseAddr("203.0.113.1")
		p := newPort(t, PendingConnsConfig{Shared: func(a netip.Addr) bool { return a == proxy }})
		p.Limit(limits, nil)
		one, two, three := p.must("192.0.2.1"), p.must("192.0.2.1"), p.must("192.0.2.1")
		if got := open(one, two, three); got != "ooo" {
			t.Errorf("open: %s, want ooo: each has its time to ask, whoever else comes from its address", got)
		}
		time.Sleep(pendingPatience)
		four := p.must("192.0.2.1")
		if got := open(one, two, three, four); got != "xooo" {
			t.Errorf("open: %s, want xooo: the oldest of its address", got)
		}
		for range 3 {
			p.must("192.0.2.1")
		}
		if _, err := p.connect("192.0.2.1"); agora.AsError(err).Code != agora.RateLimited {
			t.Errorf("the fifth within a second: %v, want RATE_LIMITED", err)
		}
		var proxied []*PendingConn
		for range 9 {
			proxied = append(proxied, p.must(proxy.String()))
		}
		if got := open(proxied...); got != "ooooooooo" {
			t.Errorf("open: %s of those by a trusted proxy", got)
		}
	})
}

// What a pending connection sends counts, until it is admitted, or its request is complete.
func TestWhatPendingConnectionsSendIsBounded(t *testing.T) {
	strangers := NewStrangers(StrangersConfig{Bytes: 100})
	p := newPort(t, PendingConnsConfig{})
	p.Limit(nil, strangers)
	send := func(c *PendingConn, n int) {
		t.Helper()
		var sent sync.WaitGroup
		sent.Go(func() { p.far[len(p.far)-1].Write(make([]byte, n)) })
		if _, err := c.Read(make([]byte, n)); err != nil {
			t.Error(err)
		}
		sent.Wait()
	}
	first := p.must("192.0.2.1")
	send(first, 60)
	second := p.must("192.0.2.2")
	send(second, 40)
	if strangers.Held() != 100 {
		t.Errorf("%d bytes are held, want 100", strangers.Held())
	}
	send(second, 1)
	if got := open(first, second); got != "xo" || strangers.Held() != 41 {
		t.Errorf("open: %s, %d bytes held, want xo and 41", got, strangers.Held())
	}
	p.ConnState(second, http.StateActive)
	if strangers.Held() != 0 {
		t.Errorf("%d bytes are held of a request that is complete", strangers.Held())
	}
	send(second, 50)
	second.Admitted()
	send(second, 500)
	if open(second) != "o" || strangers.Held() != 0 {
		t.Errorf("%d bytes are held of one that was admitted", strangers.Held())
	}
	p.ConnState(second, http.StateIdle)
	send(second, 7)
	if strangers.Held() != 7 {
		t.Errorf("%d bytes are held of one that is idle again, and asks, want 7", strangers.Held())
	}
	second.Close()
	if strangers.Held() != 0 || p.Pending() != 0 {
		t.Errorf("%d bytes are held, %d are pending of those that are closed", strangers.Held(), p.Pending())
	}
}

func TestNobodyWaitsForAPlaceOfAListenerThatIsClosed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, PendingConnsConfig{Places: 1, Patience: time.Hour})
		p.must("192.0.2.1")
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		far, near := net.Pipe()
		defer far.Close()
		defer near.Close()
		if _, err := p.Enter(ctx, near); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("Enter = %v, want %v", err, context.DeadlineExceeded)
		}
		time.AfterFunc(time.Minute, func() { p.Close() })
		if _, err := p.Enter(t.Context(), near); !errors.Is(err, net.ErrClosed) {
			t.Errorf("Enter = %v, want %v", err, net.ErrClosed)
		}
	})
}

func TestNobodyTakesTurnsBehindThoseThatSayNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPort(t, PendingConnsConfig{Turns: &turns.Turns{AtOnce: 1}})
		begun := time.Now()
		for range 3 * silentTurns {
			p.must("192.0.2.1")
		}
		if took, want := time.Since(begun), (silentTurns-1)*pendingTurn; took != want {
			t.Errorf("silent connections are let in within %v, want %v", took, want)
		}
		begun = time.Now()
		for range silentTurns {
			p.ConnState(p.must("192.0.2.2"), http.StateActive)
		}
		if took := time.Since(begun); took > pendingTurn {
			t.Errorf("those that ask waited for %v, want one turn of the last that said nothing at most", took)
		}
		begun = time.Now()
		p.must("192.0.2.3")
		if p.must("192.0.2.3"); time.Since(begun) != pendingTurn {
			t.Errorf("when most have asked, two that say nothing are let in within %v, want %v", time.Since(begun), pendingTurn)
		}
	})
}
