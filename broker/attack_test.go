package broker

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
)

// The schedules here broke other designs of the lane: ids alone, places in the lane, filters in the memory of a
// sending or a receiving edge. Each is one way in which what a past holder wrote can land late, be repeated or be lost.

// attack is a first holder of a lane whose way to the log can be held up, and an edge for its successor.
type attack struct {
	t       *testing.T
	srv     *natsd.Server
	c       *faultnet.Proxy
	e1, e2  *Broker
	old     *Lane
	results chan Result // of what the first holder was given
}

// testAttack starts both edges; clock is what the first one takes for the log's time, nil for the truth.
func testAttack(t *testing.T, clock func() time.Time, change func(*Config)) *attack {
	x := &attack{t: t, srv: testServer(t, 1), results: make(chan Result, 64)}
	x.c = testCable(t, x.srv)
	x.e2 = testBroker(t, x.srv, change)
	x.e1 = testBroker(t, x.srv, func(c *Config) {
		c.URL, c.Retry, c.clock = x.c.Addr(), 200*time.Millisecond, clock
		if change != nil {
			change(c)
		}
	})
	x.old = x.e1.Lane(lane("s1", 1, false))
	t.Cleanup(x.old.Close)
	return x
}

// under has the first holder publish ms while they can't get to the log: they are under way.
func (x *attack) under(ms ...agora.Message) {
	x.t.Helper()
	x.c.Delay()
	for _, m := range ms {
		x.old.Put(m, func(r Result) { x.results <- r })
	}
	await.True(x.t, "the record is under way", func() bool { return x.c.UnderWay() > 0 })
}

// die ends the first holder as a process ends: what it wrote to the network stays there.
func (x *attack) die() { x.e1.nc.Close() }

// arrive lets everything that is under way arrive, and returns when the server has taken it.
func (x *attack) arrive() {
	x.t.Helper()
	x.c.Mend()
	await.True(x.t, "what was under way has arrived", func() bool { return x.c.UnderWay() == 0 && x.srv.Clients(0) == 1 })
}

// heir is the lane of the next holder, at the other edge; dirty says that the first one did not hand over.
func (x *attack) heir(dirty uint64) *Lane {
	cfg := lane("s1", 2, true)
	cfg.Dirty = dirty
	l := x.e2.Lane(cfg)
	x.t.Cleanup(l.Close)
	return l
}

// log returns all that a listener gets, aborts by their stream's name in brackets.
func (x *attack) log() []string {
	x.t.Helper()
	var all []string
	for _, m := range listen(x.t, x.e2, bob, From{}).quiet(x.t) {
		switch {
		case m.Part == agora.Abort && m.Again:
			all = append(all, "abort("+m.Stream+") again")
		case m.Part == agora.Abort:
			all = append(all, "abort("+m.Stream+")")
		case m.Kind == agora.Gap:
			all = append(all, "gap")
		case m.Again:
			all = append(all, string(m.Body)+" again")
		default:
			all = append(all, string(m.Body))
		}
	}
	return all
}

func (x *attack) want(want ...string) {
	x.t.Helper()
	if got := x.log(); !slices.Equal(got, want) {
		x.t.Fatalf("the log reads %v, want %v", got, want)
	}
}

func index(p agora.Part, stream string, i uint32, body string) agora.Message {
	m := indexed(p, stream, i)
	m.Body = []byte(body)
	return m
}

// TestADelayedRecordOfADeadEdgeLandsBehindItsSuccessor: the successor reads the log, finds nothing, and stores what the
// client sends again; then the dead edge's record arrives. Filtered by what the successor's edge remembers, it was told
// twice.
func TestADelayedRecordOfADeadEdgeLandsBehindItsSuccessor(t *testing.T) {
	t.Parallel()
	for name, ms := range map[string][]agora.Message{
		"by number": {numbered(1, text("1")), numbered(2, text("2")), numbered(3, text("3"))},
		"by id":     {ided("a", text("1")), ided("b", text("2")), ided("c", text("3"))},
		"by index":  {index(agora.Start, "i", 0, "1"), index(agora.Chunk, "i", 1, "2"), index(agora.End, "i", 2, "3")},
	} {
		t.Run(name, func(t *testing.T) {
			x := testAttack(t, nil, nil)
			store(t, x.old, ms[0])
			x.under(ms[1], ms[2])
			x.die()
			heir := x.heir(1)
			if r := put(t, heir, ms[0]); !r.Again || r.Err != nil {
				t.Errorf("what was stored is sent again: %+v", r)
			}
			store(t, heir, ms[1])
			store(t, heir, ms[2])
			x.arrive()
			x.want("1", "2", "3")
			if r := put(t, heir, ms[2]); !r.Again || r.Err != nil {
				t.Errorf("sent once more: %+v", r)
			}
		})
	}
}

// TestADelayedRecordThatLandsFirstIsFound: the same, but it lands before the successor looks.
func TestADelayedRecordThatLandsFirstIsFound(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	store(t, x.old, numbered(1, text("1")))
	x.under(numbered(2, text("2")))
	x.die()
	heir := x.heir(1)
	x.arrive()
	if r := put(t, heir, numbered(2, text("2"))); !r.Again || r.Err != nil || r.Seq == 0 {
		t.Errorf("sent again: %+v, want the position of the first", r)
	}
	store(t, heir, numbered(3, text("3")))
	x.want("1", "2", "3")
}

// TestAStreamThatCannotProveItselfEndsOnceAndNothingFollows: parts without index or number are under way when their
// edge dies. The successor can't know what is missing: it aborts the stream and continues with other messages. The late
// chunk landed behind the abort, and older parts behind newer ones.
func TestAStreamThatCannotProveItselfEndsOnceAndNothingFollows(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	store(t, x.old, part(agora.Start, "p", "start"))
	x.under(part(agora.Chunk, "p", "late"), text("older"))
	x.die()
	heir := x.heir(1)
	store(t, heir, text("newer"))
	wantCode(t, put(t, heir, part(agora.Chunk, "p", "on")), agora.StreamAborted)
	x.arrive()
	x.want("start", "abort(p)", "newer")
}

// TestNothingLandsBehindTheEndOfASession: the start of a stream is under way when its session is ended from another
// edge. Without a fence at the end nobody would ever have told its receiver that it is over; and the next session's
// messages stand behind the end.
func TestNothingLandsBehindTheEndOfASession(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	store(t, x.old, part(agora.Start, "open", "open"))
	x.under(part(agora.Start, "late", "late"), text("late too"))
	x.die()
	if err := x.e2.EndLane(await.Context(t), lane("s1", 2, true)); err != nil {
		t.Fatal(err)
	}
	next := x.e2.Lane(lane("s2", 3, false))
	defer next.Close()
	store(t, next, text("next session"))
	x.arrive()
	x.want("open", "abort(open)", "next session")
}

// TestWhatASuccessorReceiptsIsStored: one record of the dead edge holds the first of two chunks, the successor is sent
// both. An id made of the first part alone took the second for stored.
func TestWhatASuccessorReceiptsIsStored(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	store(t, x.old, numbered(1, part(agora.Start, "s", "1")))
	x.under(numbered(2, part(agora.Chunk, "s", "2")))
	x.die()
	x.arrive()
	heir := x.heir(1)
	again, fresh := make(chan Result, 1), make(chan Result, 1)
	heir.Put(numbered(2, part(agora.Chunk, "s", "2")), func(r Result) { again <- r })
	heir.Put(numbered(3, part(agora.Chunk, "s", "3")), func(r Result) { fresh <- r })
	if r := await.Recv(t, "the first part's result", again); !r.Again || r.Err != nil {
		t.Errorf("first part: %+v, want that it was there", r)
	}
	if r := await.Recv(t, "the second part's result", fresh); r.Again || r.Err != nil {
		t.Errorf("second part: %+v, want it stored", r)
	}
	x.want("1", "2", "3")
}

// TestTheThirdHolderIsSafeFromBothBeforeIt: two holders have records under way when the third takes over, and they
// arrive in either order. The second of them used the lane, so the fence is its own.
func TestTheThirdHolderIsSafeFromBothBeforeIt(t *testing.T) {
	t.Parallel()
	for _, firstFirst := range []bool{true, false} {
		t.Run(fmt.Sprint("first first ", firstFirst), func(t *testing.T) {
			x := testAttack(t, nil, nil)
			c2 := testCable(t, x.srv)
			middle := testBroker(t, x.srv, func(c *Config) { c.URL = c2.Addr() })
			l2 := middle.Lane(lane("s1", 2, true))
			defer l2.Close()
			store(t, x.old, numbered(1, text("1")))
			x.under(numbered(2, text("2 of the first")))
			x.die()
			store(t, l2, numbered(2, text("2")))
			c2.Delay()
			l2.Put(numbered(3, text("3 of the second")), func(Result) {})
			await.True(t, "it is under way", func() bool { return c2.UnderWay() > 0 })
			middle.nc.Close()
			l3 := x.e2.Lane(lane("s1", 3, true))
			defer l3.Close()
			store(t, l3, numbered(3, text("3")))
			cables := []*faultnet.Proxy{x.c, c2}
			if !firstFirst {
				slices.Reverse(cables)
			}
			for left, c := range cables {
				c.Mend()
				await.True(t, "it has arrived", func() bool { return c.UnderWay() == 0 && x.srv.Clients(0) == 2-left })
			}
			x.want("1", "2", "3")
		})
	}
}

// TestAReceiverThatResumesBetweenTwoCopiesSeesOne: the sender's acknowledgement is lost with its edge, and the receiver
// resumes at an edge that remembers nothing before the message is sent again.
func TestAReceiverThatResumesBetweenTwoCopiesSeesOne(t *testing.T) {
	t.Parallel()
	x := testAttack(t, nil, nil)
	before := listen(t, x.e1, bob, From{})
	before.quiet(t)
	x.c.Deafen()
	x.old.Put(ided("m", text("once")), func(Result) {})
	await.True(t, "it is stored", func() bool { n, err := x.e2.Unread(t.Context(), bob, 0); return err == nil && n == 1 })
	x.die()
	in := listen(t, x.e2, bob, From{})
	got := bodies(in.read(t, 1))
	if r := put(t, x.heir(1), ided("m", text("once"))); !r.Again || r.Err != nil {
		t.Errorf("sent again: %+v", r)
	}
	if got = append(got, bodies(in.quiet(t))...); !slices.Equal(got, []string{"once"}) {
		t.Errorf("got %v", got)
	}
}

// TestWheneverALateRecordLandsOrderHolds lets the late record land at any moment of the take-over: before the fence,
// between fence and reading, behind. A place in the lane that the duplicate table guards was lost to it, and the stream
// went on over the hole.
func TestWheneverALateRecordLandsOrderHolds(t *testing.T) {
	t.Parallel()
	rounds := takeovers
	if testing.Short() {
		rounds = 5
	}
	x := testAttack(t, nil, nil)
	for k := range rounds {
		session := fmt.Sprint("r", k)
		c := testCable(t, x.srv)
		e1 := testBroker(t, x.srv, func(cfg *Config) { cfg.URL = c.Addr() })
		old := e1.Lane(lane(session, 1, false))
		c.Delay()
		old.Put(part(agora.Start, session, session+" start"), func(Result) {})
		await.True(t, "it is under way", func() bool { return c.UnderWay() > 0 })
		cfg := lane(session, 2, true)
		cfg.Dirty = 1
		heir := x.e2.Lane(cfg)
		var late sync.WaitGroup
		late.Go(func() {
			<-time.After(time.Duration(rand.IntN(2500)) * time.Microsecond)
			c.Mend()
		})
		store(t, heir, text(session+" other"))
		on := put(t, heir, part(agora.Chunk, session, session+" chunk"))
		late.Wait()
		await.True(t, "the first holder knows", func() bool { old.mu.Lock(); defer old.mu.Unlock(); return old.inflight == nil })
		started := slices.Contains(x.log(), session+" start")
		code := agora.AsError(on.Err)
		if code == nil || started && code.Code != agora.StreamAborted || !started && code.Code != agora.StreamNotFound {
			t.Fatalf("round %d: the start landed: %v; a chunk after it: %+v", k, started, on)
		}
		old.Close()
		heir.Close()
		e1.Close()
	}
	open := map[string]bool{}
	for _, entry := range x.log() {
		session, what, _ := strings.Cut(entry, " ")
		switch {
		case what == "start":
			open["abort("+session+")"] = true
		case what == "other" && open["abort("+session+")"]:
			t.Fatalf("the stream of %s was not ended before what came next", session)
		default:
			delete(open, entry)
		}
	}
}
