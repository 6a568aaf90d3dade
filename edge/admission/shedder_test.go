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

// parties returns a shedder with conns of principals that each hold so much.
func partied(t *testing.T, kept func(*Tally), of ...any) (*Shedder, []*Slot, []*conn) {
	t.Helper()
	var held []int64
	for i := 1; i < len(of); i += 2 {
		held = append(held, int64(of[i].(int)))
	}
	c := NewShedder(ShedderConfig{Connections: 100, Queued: 1 << 20, Kept: kept})
	var slots []*Slot
	var conns []*conn
	for i, h := range held {
		s, err := c.Acquire()
		if err == nil {
			err = s.Own(of[2*i].(Owner))
		}
		if err != nil {
			t.Fatal(err)
		}
		g := &conn{held: h}
		s.Attach(g)
		slots, conns = append(slots, s), append(conns, g)
	}
	c.sample()
	return c, slots, conns
}

// enters tells how a newcomer of a principal is answered.
func enters(c *Shedder, o Owner) error {
	s, err := c.Acquire()
	if err != nil {
		return err
	}
	defer s.Release()
	return s.Own(o)
}

func TestWhoHoldsMoreThanItsShareIsShedAndNobodyElse(t *testing.T) {
	const mib, kib = 1 << 20, 1 << 10
	mall, alice, zed := Owner{Tenant: "t", Principal: "mall", Agent: "mall/1"}, Owner{Tenant: "t", Principal: "alice"}, Owner{Tenant: "acme", Principal: "zed"}
	for _, at := range []struct {
		about string
		kept  func(*Tally)
		of    []any
		shed  string
		shut  []Owner // principals whose newcomers are refused
	}{
		{"three quarters are one principal's", nil, []any{zed, 10 * kib, mall, 700 * kib, alice, 10 * kib}, "...", nil},
		{"more than them are", nil, []any{zed, 10 * kib, mall, 500 * kib, alice, 10 * kib, mall, 500 * kib}, "...x", []Owner{mall}},
		{"twice as much as there may be is", nil, []any{mall, 1 * mib, alice, 20 * kib, mall, 1 * mib, zed, 20 * kib}, "x.x.", []Owner{mall}},
		{"it is held by registrations", func(tally *Tally) { tally.Add(mall, 3*mib) }, []any{mall, 0, alice, 20 * kib, zed, 20 * kib}, "x..", []Owner{mall}},
		{"it is held for the tenant", func(tally *Tally) { tally.Add(Owner{Tenant: "t"}, 3*mib) }, []any{mall, 100 * kib, alice, 1 * kib, zed, 100 * kib}, "x..", []Owner{mall}},
		{"two tenants hold it", nil, []any{mall, 600 * kib, zed, 600 * kib, alice, 60 * kib}, "xx.", []Owner{mall, zed}},
	} {
		c, slots, conns := partied(t, at.kept, at.of...)
		if got := shed(slots); got != at.shed {
			t.Errorf("%s: %s are shed, want %s", at.about, got, at.shed)
		}
		for _, o := range []Owner{mall, alice, zed, {Tenant: "new", Principal: "new"}, {}} {
			shut := false
			for _, s := range at.shut {
				shut = shut || s == o
			}
			if err := enters(c, o); (err != nil) != shut || (c.FullFor(o) != nil) != shut {
				t.Errorf("%s: %+v is answered %v and %v, want it refused: %t", at.about, o, err, c.FullFor(o), shut)
			}
		}
		for i, g := range conns {
			if g.closed && at.shed[i] != 'x' {
				t.Errorf("%s: connection %d is closed, which is not shed", at.about, i)
			}
		}
		if err := c.Ready(); err != nil {
			t.Errorf("%s: it is not ready: %v", at.about, err)
		}
		for _, g := range conns {
			g.held = 0
		}
		c.cfg.Kept = nil
		c.sample()
		if err := enters(c, mall); err != nil || shed(slots) != ".....  "[:len(slots)] {
			t.Errorf("%s: once nothing is held any more: %v, %s are shed", at.about, err, shed(slots))
		}
		for _, s := range slots {
			s.Release()
		}
		if len(c.parties) > 0 {
			t.Errorf("%s: who has left is still known: %v", at.about, c.parties)
		}
	}
}

func TestAnEdgeThatLetsNobodyInIsNotReady(t *testing.T) {
	c, _, conns := shedder(t, ShedderConfig{Connections: 8, Queued: 1 << 20}, 1<<20)
	ready := func(want error) {
		t.Helper()
		c.sample()
		if err := c.Ready(); err != want {
			t.Errorf("ready: %v, want %v", err, want)
		}
	}
	ready(errFull)
	if err := enters(c, one); err != errFull {
		t.Errorf("a newcomer: %v, want %v", err, errFull)
	}
	conns[0].held = 1<<20 - 1
	ready(errFull) // or it would change to and fro
	conns[0].held = 1 << 19
	ready(nil)
	var slots []*Slot
	for range 7 {
		s, err := c.Acquire()
		if err != nil {
			t.Fatal(err)
		}
		slots = append(slots, s)
	}
	ready(errTooManyConnections)
	if err := enters(c, one); err != errTooManyConnections {
		t.Errorf("a newcomer: %v, want %v", err, errTooManyConnections)
	}
	slots[0].Release()
	ready(nil)
}
