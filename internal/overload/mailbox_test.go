//go:build chaos

package overload

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// flood sends one-shots of a size to an agent as fast as it can, each once.
type flood struct {
	t     *testing.T
	from  *agent
	size  int
	tally *verify.Tally
	got   *verify.Track // what the other one gets

	mu      sync.Mutex     // guards the field below
	refused map[string]int // by code
}

const message verify.Kind = "message"

func newFlood(t *testing.T, from *agent, to string, size int) *flood {
	f := &flood{t: t, from: from, size: size, tally: verify.New(time.Now, message), got: verify.NewTrack(to, &verify.Gaps{}), refused: map[string]int{}}
	verify.NewLine(f.tally, from.id+" to "+to, 1<<12, f.got)
	return f
}

// pour sends until done says so, and returns when all was answered.
func (f *flood) pour(to string, done func() bool) {
	var hearing sync.WaitGroup
	defer hearing.Wait()
	line := f.got.Line()
	defer func() {
		until(f.t, 30*time.Second, "everything is answered", func() bool { return line.Settled() == line.Made() })
		f.from.socket.Close()
	}()
	hearing.Go(f.hear)
	body := strings.Repeat("x", f.size)
	for !done() {
		n := line.Take(verify.Sent{Kind: message})
		if err := f.from.say(`{"type":"send","id":"%d","to":%q,"payload":{"key":%d,"body":%q}}`, n, to, n, body); err != nil {
			f.t.Errorf("send: %v", err)
			return
		}
	}
}

func (f *flood) hear() {
	for {
		b, err := f.from.Next()
		if err != nil {
			return
		}
		switch n := number(b, "request_id"); field(b, "type") {
		case "receipt":
			f.got.Line().Set(n, verify.Stored)
		case "error":
			f.mu.Lock()
			f.refused[field(b, "code")]++
			f.mu.Unlock()
			f.got.Line().Set(n, verify.Refused)
		}
	}
}

// arrived reads until everything that was accepted has come, each once and in order.
func (f *flood) arrived(a *agent) {
	f.t.Helper()
	a.socket.SetReadDeadline(time.Now().Add(60 * time.Second))
	for owed := f.got.Line().Owed(); owed > 0; owed = f.got.Line().Owed() {
		b, err := a.Next()
		switch {
		case err != nil:
			f.t.Fatalf("%d have not arrived: %v", owed, err)
		case field(b, "type") == "gap":
			f.t.Fatalf("was told of a gap: %s", b)
		case field(b, "type") == "message":
			f.got.Arrived(message, number(b, "key"), number(b, "seq"))
		}
	}
	for _, v := range f.tally.News() {
		f.t.Errorf("%s: %s", v.Kind, v.Text)
	}
}

// pressed reports whether the flood was held back.
func (f *flood) pressed() bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.refused["RATE_LIMITED"] > 10
}

// TestAReceiverThatReadsNothingCostsOnlyItsSender floods an agent that does not read, until its mailbox is
// nearly full. What was accepted arrives when it reads again, and a mailbox beside it keeps all of its mail.
func TestAReceiverThatReadsNothingCostsOnlyItsSender(t *testing.T) {
	c := start(t, "--mailbox.max-records", "2048")
	rest := everybodyElse{t, []string{c.Edges[1].URL(), c.Edges[2].URL()}}
	sleeper, err := join(c.Edges[0].URL(), "sleeper", loadgen.Target{})
	if err != nil {
		t.Fatal(err)
	}
	sleeper.socket.Close()
	writer, err := join(c.Edges[1].URL(), "writer", loadgen.Target{})
	if err != nil {
		t.Fatal(err)
	}
	defer writer.socket.Close()
	for n := range 100 {
		if err := writer.say(`{"type":"send","id":"m-%d","to":"sleeper","payload":%d}`, n, n); err != nil {
			t.Fatal(err)
		}
	}
	stuck, err := join(c.Edges[0].URL(), "stuck", loadgen.Target{})
	if err != nil {
		t.Fatal(err)
	}
	stuck.narrow()
	defer stuck.socket.Close()
	flooder, err := join(c.Edges[1].URL(), "flooder", loadgen.Target{})
	if err != nil {
		t.Fatal(err)
	}
	f := newFlood(t, flooder, "stuck", 4<<10)
	halfLoad(t, c.Edges[1].URL(), c.Edges[2].URL())
	before := rest.median(func() { <-time.After(3 * time.Second) })
	memory := watchMemory(c.Edges[0])
	now := rest.median(func() {
		deadline := time.Now().Add(30 * time.Second)
		f.pour("stuck", func() bool { return f.pressed() || time.Now().After(deadline) })
	})
	rest.unmoved(before, now)
	memory.bounded(t, 10)
	_, counts := f.tally.Counts()
	t.Logf("sent %d, accepted %d, refused %v", counts.Sent, counts.Stored, f.refused)
	if f.refused["RATE_LIMITED"] == 0 {
		t.Error("nothing was refused with RATE_LIMITED although the receiver reads nothing")
	}
	stuck.widen()
	f.arrived(stuck)
	back, err := join(c.Edges[2].URL(), "sleeper", loadgen.Target{})
	if err != nil {
		t.Fatal(err)
	}
	defer back.socket.Close()
	for n := range 100 {
		m, err := back.Next()
		for err == nil && field(m, "type") != "message" { // a heartbeat
			m, err = back.Next()
		}
		if err != nil || field(m, "payload") != fmt.Sprint(n) {
			t.Fatalf("mail %d of the sleeper is %.200s, %v", n, m, err)
		}
	}
}

// TestManySlowReadersCostOnlyThemselves has senders at full speed write to many agents that read slowly.
func TestManySlowReadersCostOnlyThemselves(t *testing.T) {
	c := start(t, "--mailbox.shard-bytes", "256MiB")
	rest := everybodyElse{t, []string{c.Edges[1].URL(), c.Edges[2].URL()}}
	readers := many(1000, 200)
	slow := make([]*agent, readers)
	crowd(t, readers, func(k int) error {
		a, err := join(c.Edges[0].URL(), fmt.Sprintf("slow-%d", k), loadgen.Target{})
		if err == nil {
			a.narrow()
		}
		slow[k] = a
		return err
	})
	halfLoad(t, c.Edges[1].URL(), c.Edges[2].URL())
	before := rest.median(func() { <-time.After(3 * time.Second) })
	memory := watchMemory(c.Edges[0])
	size, each := many(8<<10, 32<<10), 16
	now := rest.median(func() {
		var all sync.WaitGroup
		for k, a := range slow {
			all.Go(func() { // one frame in 100 ms
				defer a.socket.Close()
				for n := 0; n < each; {
					f, err := a.Next()
					if err != nil {
						t.Errorf("slow-%d got %d messages: %v", k, n, err)
						return
					}
					if field(f, "type") == "message" {
						if number(f, "key") != uint64(n) {
							t.Errorf("slow-%d got %.80s, want message %d", k, f, n)
						}
						n++
					}
					<-time.After(100 * time.Millisecond)
				}
			})
		}
		for s := range 4 {
			all.Go(func() { sendAll(t, c.Edges[1].URL(), s, readers, each, size) })
		}
		all.Wait()
	})
	rest.unmoved(before, now)
	memory.bounded(t, readers)
}

// sendAll has sender s send messages to every fourth slow reader, each of them until it is accepted.
func sendAll(t *testing.T, url string, s, readers, each, size int) {
	a, err := join(url, fmt.Sprintf("sender-%d", s), loadgen.Target{})
	if err != nil {
		t.Error(err)
		return
	}
	defer a.socket.Close()
	body := strings.Repeat("x", size)
	for n := range each {
		for k := s; k < readers; k += 4 {
			for accepted := false; !accepted; {
				id := fmt.Sprintf("%d-%d", k, n)
				if err := a.say(`{"type":"send","id":%q,"to":"slow-%d","payload":{"key":%d,"body":%q}}`, id, k, n, body); err != nil {
					t.Errorf("send: %v", err)
					return
				}
				f, err := a.Next()
				for err == nil && field(f, "request_id") != id { // a heartbeat
					f, err = a.Next()
				}
				if err != nil {
					t.Errorf("sender: %v", err)
					return
				}
				accepted = field(f, "type") == "receipt"
				if !accepted {
					<-time.After(time.Duration(number(f, "retry_after_ms")) * time.Millisecond)
				}
			}
		}
	}
}

// crowd does something for each of many, some at a time, and fails the test when it can't.
func crowd(t *testing.T, n int, do func(k int) error) {
	t.Helper()
	var all sync.WaitGroup
	places := make(chan struct{}, 32)
	for k := range n {
		places <- struct{}{}
		all.Go(func() {
			defer func() { <-places }()
			if err := do(k); err != nil {
				t.Errorf("%d: %v", k, err)
			}
		})
	}
	all.Wait()
	if t.Failed() {
		t.FailNow()
	}
}
