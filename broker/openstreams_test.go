package broker

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/scan"
	"github.com/agora-relay/agora/internal/await"
)

// unendedIn returns the lanes that a search tells, sorted.
func unendedIn(t *testing.T, b *Broker, before time.Time) (lanes []string) {
	t.Helper()
	err := b.Unended(await.Context(t), before, func(batch []Unended) error {
		for _, u := range batch {
			lanes = append(lanes, fmt.Sprintf("%s %s %d to %s of %s", u.From, u.Session, u.Epoch, u.To.Name(), u.To.Tenant))
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(lanes)
	return lanes
}

func TestLanesWithStreamsThatHaveNoEndAreFound(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	say := func(cfg LaneConfig, ms ...agora.Message) {
		t.Helper()
		l := b.Lane(cfg)
		defer l.Close()
		for _, m := range ms {
			store(t, l, m)
		}
	}
	room := agora.ToSpace("acme", "room")
	say(lane("one-shots", 1, false), text("a"), agora.Message{ID: "asks", Body: []byte("b")})
	say(lane("ended", 1, false), part(agora.Start, "s", "a"), part(agora.Chunk, "s", "b"), part(agora.End, "s", "c"))
	say(lane("cancelled", 1, false), part(agora.Start, "s", "a"), part(agora.Cancel, "s", "b"))
	say(lane("open", 1, false), part(agora.Start, "s", "a"), part(agora.Start, "t", "a"), part(agora.End, "s", "c"))
	say(lane("open", 2, true), text("c"))
	say(LaneConfig{From: "carol", Session: "replies", Epoch: 7, To: agora.ToAgent("acme", "bob")}, agora.Message{Kind: agora.Reply, Part: agora.Start, Stream: "s", Body: []byte("a")})
	say(LaneConfig{From: "carol", Session: "event", Epoch: 7, To: room}, agora.Message{Kind: agora.Event, Part: agora.Start, Stream: "s", Body: []byte("a")})
	past := time.Now().Add(-30 * time.Second) // of a lease that was good then
	say(LaneConfig{From: "alice", Session: "late", Epoch: 1, To: bob, Valid: func() (time.Time, bool) { return past, true }}, part(agora.Start, "s", "a"))

	all := []string{"alice late 1 to bob ☃ of default", "alice open 2 to bob ☃ of default", "carol event 7 to room of acme", "carol replies 7 to bob of acme"}
	if got := unendedIn(t, b, b.Now().Add(time.Second)); !slices.Equal(got, all) {
		t.Errorf("found %q, want %q", got, all)
	}
	// What begins under a lease that is good then is of sessions that presence knows.
	if got := unendedIn(t, b, past.Add(time.Second)); !slices.Equal(got, all[:1]) {
		t.Errorf("found %q of what was open before, want %q", got, all[:1])
	}
	cfg := lane("open", 3, true)
	if err := b.EndLane(await.Context(t), cfg); err != nil {
		t.Fatal(err)
	}
	if got := unendedIn(t, b, b.Now().Add(time.Second)); slices.Contains(got, all[1]) {
		t.Errorf("found %q once it was ended", got)
	}
	stop := errors.New("stop")
	if err := b.Unended(await.Context(t), b.Now(), func([]Unended) error { return stop }); !errors.Is(err, stop) {
		t.Errorf("a search that was stopped: %v", err)
	}
}

func TestASearchForWhatHasNoEndKeepsNoMoreInMindThanItMay(t *testing.T) {
	t.Parallel()
	b := testBroker(t, testServer(t, 1), nil)
	const lanes = 2 * jslog.ReadBatch
	for k := range lanes {
		l := b.Lane(LaneConfig{From: "alice", Session: fmt.Sprint("s", k), Epoch: 1, To: bob})
		store(t, l, part(agora.Start, "s", "a"))
		l.Close()
	}
	most, told := 0, map[string]bool{}
	cfg := b.scanConfig()
	cfg.MostOpen = 10
	err := scan.New(b.log, cfg).Unended(await.Context(t), b.Now().Add(time.Second), func(batch []Unended) error {
		most = max(most, len(batch))
		for _, l := range batch {
			told[l.Session] = true
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(told) != lanes || most > jslog.ReadBatch+cfg.MostOpen {
		t.Errorf("%d of %d lanes, %d at a time", len(told), lanes, most)
	}
}

// BenchmarkUnended searches a log of 100,000 records in 5,000 mailboxes.
func BenchmarkUnended(b *testing.B) {
	const mailboxes, each = 5_000, 20
	log := testBroker(b, testServer(b, 1), func(c *Config) { c.ShardBytes = 1 << 30 })
	for k := range mailboxes {
		l := log.Lane(LaneConfig{From: "bench", Session: "s", Epoch: 1, To: agora.ToAgent("default", agora.AgentID(fmt.Sprint("agent ", k)))})
		for range each {
			if r := put(b, l, agora.Message{Body: []byte("a word")}); r.Err != nil {
				b.Fatal(r.Err)
			}
		}
		l.Close()
	}
	for b.Loop() {
		if err := log.Unended(b.Context(), log.Now(), func([]Unended) error { return nil }); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(mailboxes*each*float64(b.N)/b.Elapsed().Seconds(), "records/s")
}
