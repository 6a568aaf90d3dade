package admission

import (
	"testing"

	"github.com/agora-relay/agora"
)

// conn holds what a test says, counts the looks at it, and notes that it was closed.
type conn struct {
	held    int64
	working bool
	looks   int
	closed  bool
}

func (g *conn) Held() (int64, bool) {
	g.looks++
	return g.held, g.working
}
func (g *conn) Shed() { g.closed = true }

// shedder returns a shedder with conns that each hold so much.
func shedder(t *testing.T, cfg ShedderConfig, held ...int64) (*Shedder, []*Slot, []*conn) {
	t.Helper()
	c := NewShedder(cfg)
	var slots []*Slot
	var conns []*conn
	for _, h := range held {
		s, err := c.Acquire()
		if err != nil {
			t.Fatalf("Acquire: %v", err)
		}
		g := &conn{held: h}
		s.Attach(g)
		slots, conns = append(slots, s), append(conns, g)
	}
	return c, slots, conns
}

// shed returns which slots are shed.
func shed(slots []*Slot) string {
	s := ""
	for _, slot := range slots {
		if slot.Shedding() {
			s += "x"
		} else {
			s += "."
		}
	}
	return s
}

func TestWhoCameLastIsShedFirst(t *testing.T) {
	const kib = 1 << 10
	for _, at := range []struct {
		about  string
		first  int64 // held by the first conn; the other seven hold 16 KiB each
		shed   string
		share  int
		closed string
	}{
		{"little is held", 100 * kib, "........", FullShare, "........"},
		{"half way, queues are whole", 400 * kib, "........", FullShare, "........"},
		{"three quarters, queues are halved", 656 * kib, "........", FullShare / 2, "........"},
		{"just over, the last is shed", 940 * kib, ".......x", 1, "........"},
		{"a quarter over, half of them are", 1168 * kib, "....xxxx", 1, "........"},
		{"half over, all are", 1424 * kib, "xxxxxxxx", 1, "........"},
		{"far over, the last are closed, as many as it takes", 1450 * kib, "xxxxxxxx", 1, "......xx"},
		{"hopeless, but the oldest stay", 5000 * kib, "xxxxxxxx", 1, "....xxxx"},
	} {
		t.Run(at.about, func(t *testing.T) {
			share := FullShare
			c, slots, conns := shedder(t, ShedderConfig{Queued: 1024 * kib, ShrinkQueues: func(s int) { share = s }},
				at.first, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib)
			c.sample()
			if got := shed(slots); got != at.shed {
				t.Errorf("shed %s, want %s", got, at.shed)
			}
			if share != at.share || c.Share() != at.share {
				t.Errorf("share %d, told %d, want %d", c.Share(), share, at.share)
			}
			closed := ""
			for _, g := range conns {
				closed += map[bool]string{false: ".", true: "x"}[g.closed]
			}
			if closed != at.closed {
				t.Errorf("closed %s, want %s", closed, at.closed)
			}
		})
	}
}

func TestAShedderRecovers(t *testing.T) {
	c, slots, conns := shedder(t, ShedderConfig{Queued: 1 << 20}, 0, 2<<20)
	c.sample()
	if _, err := c.Acquire(); agora.AsError(err) != errFull {
		t.Errorf("Acquire while too much is held = %v, want %v", err, errFull)
	}
	conns[1].held = 0
	c.sample()
	if s := shed(slots); s != ".." || c.Share() != FullShare {
		t.Errorf("shed %s, share %d after all was let go", s, c.Share())
	}
	if _, err := c.Acquire(); err != nil {
		t.Errorf("Acquire after all was let go: %v", err)
	}
}

// What a connection holds that closes already is not counted against others a second time.
func TestWhoClosesIsCountedOnce(t *testing.T) {
	c, _, conns := shedder(t, ShedderConfig{Queued: 1 << 20}, 1<<19, 1<<19, 1<<19, 1<<19)
	c.sample()
	c.sample()
	if !conns[3].closed || conns[2].closed {
		t.Errorf("closed the last: %v, the one before it: %v", conns[3].closed, conns[2].closed)
	}
}

func TestAQuietConnectionIsNotSampled(t *testing.T) {
	c, slots, conns := shedder(t, ShedderConfig{Queued: 1 << 20}, 0, 0)
	conns[1].working = true
	looksAt := func(i int) int {
		before := conns[i].looks
		c.sample()
		return conns[i].looks - before
	}
	c.sample()
	if n := looksAt(0); n != 0 {
		t.Errorf("%d samples of one that is quiet, want none", n)
	}
	if n := looksAt(1); n == 0 {
		t.Error("one that is at work was forgotten: it may come to hold something")
	}
	conns[0].held = 1000
	slots[0].MarkActive()
	if n := looksAt(0); n == 0 || c.Held() != 1000 {
		t.Errorf("%d samples of one that was marked, %d bytes held in all, want 1000", n, c.Held())
	}
	if n := looksAt(0); n == 0 || c.Held() != 1000 {
		t.Error("one that holds something was forgotten")
	}
	slots[0].Release()
	if c.sample(); c.Held() != 0 {
		t.Errorf("%d bytes are held by who has left", c.Held())
	}
}

// late is a connection that comes to hold something, and is marked active, just after it was seen to hold nothing.
type late struct {
	conn
	mark func(looks int)
}

func (g *late) Held() (int64, bool) {
	held, working := g.conn.Held()
	g.mark(g.looks)
	return held, working
}

// What begins to be held while the conn is being looked at must be seen by the next look.
func TestWhatIsMarkedActiveWhileItIsSampledIsNotForgotten(t *testing.T) {
	for _, when := range []int{1, 2} { // it is looked at, and again when it seems to be quiet
		c := NewShedder(ShedderConfig{Queued: 1 << 20})
		s, err := c.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		g := &late{}
		g.mark = func(looks int) {
			if looks == when {
				g.held = 1000
				s.MarkActive()
			}
		}
		s.Attach(g)
		c.sample()
		if c.sample(); c.Held() != 1000 {
			t.Errorf("marked at sample %d: %d bytes held, want 1000", when, c.Held())
		}
	}
}

func TestAShedderTakesNoMoreThanItMay(t *testing.T) {
	c, slots, _ := shedder(t, ShedderConfig{Connections: 2}, 0, 0)
	if _, err := c.Acquire(); agora.AsError(err) != errTooManyConnections {
		t.Errorf("third Acquire = %v, want %v", err, errTooManyConnections)
	}
	slots[0].Release()
	slots[0].Release()
	if _, err := c.Acquire(); err != nil {
		t.Errorf("Acquire after one left: %v", err)
	}
	if _, err := c.Acquire(); err == nil {
		t.Error("leaving twice made room for two")
	}
	c.Shut(errFull)
	slots[1].Release()
	if _, err := c.Acquire(); err == nil {
		t.Error("a shedder that is shut let somebody in")
	}
}

func TestConnectionsAreFewerThanFiles(t *testing.T) {
	if n, files := roomForConnections(), openFiles(); files > 0 && (n < 1 || uint64(n) >= files) {
		t.Errorf("%d connections with %d files", n, files)
	}
}

func TestAskingWhetherToShedAllocatesNothing(t *testing.T) {
	_, slots, _ := shedder(t, ShedderConfig{}, 0)
	if n := testing.AllocsPerRun(100, func() { slots[0].Shedding() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
