package admission

import (
	"fmt"
	"net/netip"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora"
)

// crowd enters strangers into a budget, and notes which were evicted, and why.
type crowd struct {
	t   *testing.T
	of  *Strangers
	all []*Stranger

	mu      sync.Mutex // guards the field below
	evicted []error
}

func (c *crowd) enter(from string) *Stranger {
	i := len(c.all)
	c.evicted = append(c.evicted, nil)
	c.all = append(c.all, c.of.Enter(netip.MustParseAddr(from), func(err error) {
		c.mu.Lock()
		defer c.mu.Unlock()
		c.evicted[i] = err
	}))
	return c.all[i]
}

// ended returns which strangers were evicted: c for crowded out, s for too slow.
func (c *crowd) ended() (s string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for i, err := range c.evicted {
		if got := c.all[i].Err(); got != err && (got == nil || err == nil) {
			c.t.Errorf("stranger %d was told %v, and Err is %v", i, err, got)
		}
		switch agora.AsError(err) {
		case errCrowded:
			s += "c"
		case errSlow:
			s += "s"
		default:
			s += "."
		}
	}
	return s
}

func (c *crowd) want(ended string, held int64) {
	c.t.Helper()
	if got := c.ended(); got != ended {
		c.t.Errorf("ended %s, want %s", got, ended)
	}
	if got := c.of.Held(); got != held {
		c.t.Errorf("%d bytes are held, want %d", got, held)
	}
}

func TestTheStrangerThatHasWaitedLongestGivesItsPlaceToANewcomer(t *testing.T) {
	c := &crowd{t: t, of: NewStrangers(StrangersConfig{Places: 3})}
	for i := range 5 {
		c.enter(fmt.Sprintf("192.0.2.%d", i))
	}
	c.want("cc...", 0)
	if n := c.of.Stats().Places.Load(); n != 3 {
		t.Errorf("%d places are taken, want 3", n)
	}
	for _, g := range c.all {
		g.Leave()
		g.Leave()
	}
	if s := c.of.Stats(); s.Places.Load() != 0 || s.Entered.Load() != 5 || s.Evicted.Load() != 2 || len(c.of.places) != 0 {
		t.Errorf("after all have left: %d places, %d entered, %d evicted, %d addresses", s.Places.Load(), s.Entered.Load(), s.Evicted.Load(), len(c.of.places))
	}
}

func TestOneAddressHasAQuarterOfThePlacesOfStrangers(t *testing.T) {
	for about, at := range map[string]struct {
		shared SharedAddress
		ended  string
	}{
		"a client's":         {nil, ".cc.."},
		"of a trusted proxy": {func(netip.Addr) bool { return true }, "....."},
	} {
		c := &crowd{t: t, of: NewStrangers(StrangersConfig{Places: 8, Shared: at.shared})}
		c.enter("198.51.100.1")
		for range 4 {
			c.enter("192.0.2.1")
		}
		if got := c.ended(); got != at.ended {
			t.Errorf("%s address: ended %s, want %s", about, got, at.ended)
		}
	}
}

func TestStrangersThatHoldMuchGoBeforeThoseThatHoldLittle(t *testing.T) {
	c := &crowd{t: t, of: NewStrangers(StrangersConfig{Bytes: 40 << 10})} // 10 bytes are little
	small, first, second := c.enter("192.0.2.1"), c.enter("192.0.2.2"), c.enter("192.0.2.3")
	for _, h := range []struct {
		by *Stranger
		n  int
	}{{small, 10}, {first, 20 << 10}, {second, 20<<10 - 10}} {
		if err := h.by.Hold(h.n); err != nil {
			t.Fatal(err)
		}
	}
	c.want("...", 40<<10)
	if err := second.Hold(1); err != nil {
		t.Errorf("the newer of the large ones: %v", err)
	}
	c.want(".c.", 20<<10+1)
	if err := second.Hold(30 << 10); agora.AsError(err) != errCrowded {
		t.Errorf("alone it holds more than there is: %v, want %v", err, errCrowded)
	}
	c.want(".cc", 10)
	small.Hold(-10)
	small.Leave()
	second.Leave()
	c.want(".cc", 0)
}

// Where each holds little, and all of them hold too much, the one that began first goes.
func TestManySmallStrangersAreBoundedTogether(t *testing.T) {
	c := &crowd{t: t, of: NewStrangers(StrangersConfig{Bytes: littlePart})} // one byte is little
	conns := make([]*Stranger, littlePart+2)
	gone := 0
	for i := range conns {
		conns[i] = c.of.enterConn(func(error) { gone++ })
		conns[i].Hold(1)
	}
	if gone != 2 || conns[1].Err() == nil || conns[2].Err() != nil || c.of.Held() != littlePart {
		t.Errorf("%d are evicted, and %d bytes held, want the first 2, and %d", gone, c.of.Held(), littlePart)
	}
}

func TestARequestOfAStrangerHasATimeLimit(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := &crowd{t: t, of: NewStrangers(StrangersConfig{})}
		slow, stays, quick := c.enter("192.0.2.1"), c.enter("192.0.2.1"), c.enter("192.0.2.1")
		slow.Hold(100)
		stays.Stay()
		quick.Leave()
		<-time.After(20*time.Second - 1)
		c.want("...", 100)
		<-time.After(1)
		synctest.Wait()
		c.want("s..", 0)
		if n := c.of.Stats().Late.Load(); n != 1 {
			t.Errorf("%d were late, want 1", n)
		}
		<-time.After(time.Hour)
		c.want("s..", 0)
	})
}

// The edge holds much for agents: strangers are the first to go, and no bytes of theirs refuse anybody else.
func TestStrangersAreShedFirst(t *testing.T) {
	const mib = 1 << 20
	s, slots, conns := shedder(t, ShedderConfig{Queued: 16 * mib}, 0, 0)
	c := &crowd{t: t, of: s.Strangers()}
	g := c.enter("192.0.2.1")
	if g.Hold(mib - 1); c.ended() != "." {
		t.Fatal("a sixteenth is too much")
	}
	s.sample()
	if _, err := s.Acquire(); err != nil || s.Held() != 0 {
		t.Errorf("with what strangers hold, %d bytes are held, Acquire: %v", s.Held(), err)
	}
	conns[0].held = 12 * mib
	slots[0].MarkActive()
	s.sample()
	c.want("c", 0)
	if shed(slots) != ".." {
		t.Error("agents are shed as well")
	}
}
