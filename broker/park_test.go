package broker

import (
	"slices"
	"testing"

	"github.com/agora-relay/agora"
)

// parked puts a lane aside and has it go on.
func parked(t *testing.T, b *Broker, l *Lane, costly bool) *Lane {
	t.Helper()
	p, ok := l.Park(costly)
	if !ok {
		t.Fatal("an idle lane can't be put aside")
	}
	cfg := l.cfg
	cfg.Used, cfg.Parked = true, &p
	l = b.Lane(cfg)
	t.Cleanup(l.Close)
	return l
}

func TestALanePutAsideGoesOnWhereItWas(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	for n := range uint64(3) {
		store(t, l, numbered(n+1, text("numbered")))
	}
	store(t, l, numbered(7, text("seven")))
	l = parked(t, b, l, false)
	if r := put(t, l, numbered(7, text("seven"))); !r.Again || r.Err != nil {
		t.Errorf("sent again: %+v", r)
	}
	wantCode(t, put(t, l, numbered(5, text("passed over"))), agora.InvalidRequest)
	store(t, l, numbered(8, text("on")))
	if n := b.Stats().Fences; n != 0 {
		t.Errorf("%d fences: numbers need no look into the log", n)
	}
	heir := b.Lane(lane("s1", 2, true))
	defer heir.Close()
	store(t, heir, numbered(9, text("heir")))
	l = parked(t, b, l, false)
	wantCode(t, put(t, l, numbered(10, text("zombie"))), agora.Unavailable)
	want := []string{"numbered", "numbered", "numbered", "seven", "on", "heir"}
	if got := bodies(listen(t, b, bob, From{}).quiet(t)); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

func TestALanePutAsideEarlyReadsTheLogForIDsAndStreams(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	l := b.Lane(lane("s1", 1, false))
	at := store(t, l, ided("id", text("1")))
	store(t, l, indexed(agora.Start, "x", 0))
	store(t, l, indexed(agora.End, "x", 1))
	if _, ok := l.Park(false); ok {
		t.Error("put aside cheaply, though its id may be said again")
	}
	l = parked(t, b, l, true)
	if r := put(t, l, ided("id", text("1"))); !r.Again || r.Seq != at {
		t.Errorf("id sent again: %+v, want %d", r, at)
	}
	if r := put(t, l, indexed(agora.Start, "x", 0)); !r.Again {
		t.Errorf("start sent again: %+v", r)
	}
	store(t, l, text("2"))
	if n := b.Stats().Fences; n != 1 {
		t.Errorf("%d fences, want one", n)
	}
}

func TestALaneWithSomethingToAnswerForIsNotPutAside(t *testing.T) {
	t.Parallel()
	s := testServer(t, 1)
	c := testCable(t, s)
	b := testBroker(t, s, func(cfg *Config) { cfg.URL = c.Addr() })
	cfg := lane("s1", 1, false)
	for name, trouble := range map[string]func(l *Lane){
		"in hand":     func(l *Lane) { c.Deafen(); l.Put(text("1"), func(Result) {}) },
		"open stream": func(l *Lane) { store(t, l, part(agora.Start, "x", "")) },
		"refused":     func(l *Lane) { l.ledger.Lose(&agora.Message{N: 1}) },
	} {
		cfg.Session = agora.EncodeToken(name)
		l := b.Lane(cfg)
		trouble(l)
		if _, ok := l.Park(true); ok {
			t.Errorf("%s: put aside", name)
		}
		c.Mend()
		l.Close()
	}
}
