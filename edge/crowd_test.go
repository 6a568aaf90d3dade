package edge

import (
	"testing"

	"github.com/agora-relay/agora"
)

// guest holds what a test says, counts the looks at it, and notes that it was closed.
type guest struct {
	held    int64
	working bool
	looks   int
	closed  Cause
}

func (g *guest) Held() (int64, bool) {
	g.looks++
	return g.held, g.working
}
func (g *guest) Close(r Reason) { g.closed = r.Cause }

// crowd returns a crowd with guests that each hold so much.
func crowd(t *testing.T, cfg CrowdConfig, held ...int64) (*Crowd, []*Seat, []*guest) {
	t.Helper()
	c := NewCrowd(cfg)
	var seats []*Seat
	var guests []*guest
	for _, h := range held {
		s, err := c.Enter()
		if err != nil {
			t.Fatalf("Enter: %v", err)
		}
		g := &guest{held: h}
		s.Sit(g)
		seats, guests = append(seats, s), append(guests, g)
	}
	return c, seats, guests
}

// shed returns which seats are shed.
func shed(seats []*Seat) string {
	s := ""
	for _, seat := range seats {
		if seat.Shed() {
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
		first  int64 // held by the first guest; the other seven hold 16 KiB each
		shed   string
		share  int
		closed string
	}{
		{"little is held", 100 * kib, "........", Whole, "........"},
		{"half way, queues are whole", 400 * kib, "........", Whole, "........"},
		{"three quarters, queues are halved", 656 * kib, "........", Whole / 2, "........"},
		{"just over, the last is shed", 940 * kib, ".......x", 1, "........"},
		{"a quarter over, half of them are", 1168 * kib, "....xxxx", 1, "........"},
		{"half over, all are", 1424 * kib, "xxxxxxxx", 1, "........"},
		{"far over, the last are closed, as many as it takes", 1450 * kib, "xxxxxxxx", 1, "......xx"},
		{"hopeless, but the oldest stay", 5000 * kib, "xxxxxxxx", 1, "....xxxx"},
	} {
		t.Run(at.about, func(t *testing.T) {
			share := Whole
			c, seats, guests := crowd(t, CrowdConfig{Queued: 1024 * kib, Squeeze: func(s int) { share = s }},
				at.first, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib, 16*kib)
			c.look()
			if got := shed(seats); got != at.shed {
				t.Errorf("shed %s, want %s", got, at.shed)
			}
			if share != at.share || c.Share() != at.share {
				t.Errorf("share %d, told %d, want %d", c.Share(), share, at.share)
			}
			closed := ""
			for _, g := range guests {
				closed += map[Cause]string{"": ".", Shed: "x"}[g.closed]
			}
			if closed != at.closed {
				t.Errorf("closed %s, want %s", closed, at.closed)
			}
		})
	}
}

func TestACrowdRecovers(t *testing.T) {
	c, seats, guests := crowd(t, CrowdConfig{Queued: 1 << 20}, 0, 2<<20)
	c.look()
	if _, err := c.Enter(); agora.AsError(err) != errBusy {
		t.Errorf("Enter while too much is held = %v, want %v", err, errBusy)
	}
	guests[1].held = 0
	c.look()
	if s := shed(seats); s != ".." || c.Share() != Whole {
		t.Errorf("shed %s, share %d after all was let go", s, c.Share())
	}
	if _, err := c.Enter(); err != nil {
		t.Errorf("Enter after all was let go: %v", err)
	}
}

// What a connection holds that closes already is not counted against others a second time.
func TestWhoClosesIsCountedOnce(t *testing.T) {
	c, _, guests := crowd(t, CrowdConfig{Queued: 1 << 20}, 1<<19, 1<<19, 1<<19, 1<<19)
	c.look()
	c.look()
	if guests[3].closed == "" || guests[2].closed != "" {
		t.Errorf("closed the last: %v, the one before it: %v", guests[3].closed, guests[2].closed)
	}
}

func TestWhoIsQuietIsNotLookedAt(t *testing.T) {
	c, seats, guests := crowd(t, CrowdConfig{Queued: 1 << 20}, 0, 0)
	guests[1].working = true
	looksAt := func(i int) int {
		before := guests[i].looks
		c.look()
		return guests[i].looks - before
	}
	c.look()
	if n := looksAt(0); n != 0 {
		t.Errorf("%d looks at one that is quiet, want none", n)
	}
	if n := looksAt(1); n == 0 {
		t.Error("one that is at work was forgotten: it may come to hold something")
	}
	guests[0].held = 1000
	seats[0].Stir()
	if n := looksAt(0); n == 0 || c.Held() != 1000 {
		t.Errorf("%d looks at one that stirred, %d bytes held in all, want 1000", n, c.Held())
	}
	if n := looksAt(0); n == 0 || c.Held() != 1000 {
		t.Error("one that holds something was forgotten")
	}
	seats[0].Leave()
	if c.look(); c.Held() != 0 {
		t.Errorf("%d bytes are held by who has left", c.Held())
	}
}

// gate is a guest that comes to hold something, and stirs, just after it was seen to hold nothing.
type gate struct {
	guest
	stir func(looks int)
}

func (g *gate) Held() (int64, bool) {
	held, working := g.guest.Held()
	g.stir(g.looks)
	return held, working
}

// What begins to be held while the guest is being looked at must be seen by the next look.
func TestWhoStirsWhileItIsLookedAtIsNotForgotten(t *testing.T) {
	for _, when := range []int{1, 2} { // it is looked at, and again when it seems to be quiet
		c := NewCrowd(CrowdConfig{Queued: 1 << 20})
		s, err := c.Enter()
		if err != nil {
			t.Fatal(err)
		}
		g := &gate{}
		g.stir = func(looks int) {
			if looks == when {
				g.held = 1000
				s.Stir()
			}
		}
		s.Sit(g)
		c.look()
		if c.look(); c.Held() != 1000 {
			t.Errorf("stirred at look %d: %d bytes held, want 1000", when, c.Held())
		}
	}
}

func TestACrowdTakesNoMoreThanItMay(t *testing.T) {
	c, seats, _ := crowd(t, CrowdConfig{Connections: 2}, 0, 0)
	if _, err := c.Enter(); agora.AsError(err) != errCrowded {
		t.Errorf("third Enter = %v, want %v", err, errCrowded)
	}
	seats[0].Leave()
	seats[0].Leave()
	if _, err := c.Enter(); err != nil {
		t.Errorf("Enter after one left: %v", err)
	}
	if _, err := c.Enter(); err == nil {
		t.Error("leaving twice made room for two")
	}
	c.Shut(errBusy)
	seats[1].Leave()
	if _, err := c.Enter(); err == nil {
		t.Error("a crowd that is shut let somebody in")
	}
}

func TestConnectionsAreFewerThanFiles(t *testing.T) {
	if n, files := roomForConnections(), openFiles(); files > 0 && (n < 1 || uint64(n) >= files) {
		t.Errorf("%d connections with %d files", n, files)
	}
}

func TestAskingWhetherToShedAllocatesNothing(t *testing.T) {
	_, seats, _ := crowd(t, CrowdConfig{}, 0)
	if n := testing.AllocsPerRun(100, func() { seats[0].Shed() }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}
