package agoratest

import (
	"cmp"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/loadgen/verify"
)

// TalkOptions say who talks. The zero value is six agents.
type TalkOptions struct {
	Name    string        // begins the ids of the agents and is the space that all are in; "talk"
	Agents  int           // at least 3; 6
	Beat    time.Duration // between two frames of one sender to one receiver; 15ms
	Silence time.Duration // after which an agent takes its connection for dead and makes another, and twice as long each time after it; 5s
	Patient bool          // the second agent never does

	Deadline time.Duration // that requests are sent with, which must arrive with about as much time left; none
}

func (o TalkOptions) withDefaults() TalkOptions {
	o.Name = cmp.Or(o.Name, "talk")
	o.Agents = cmp.Or(o.Agents, 6)
	o.Beat = cmp.Or(o.Beat, 15*time.Millisecond)
	o.Silence = cmp.Or(o.Silence, 5*time.Second)
	return o
}

// Talk is agents that send each other numbered messages, streams, replies and space
// events through bare sockets, without a pause, whatever happens to the
// cluster, while verify holds what arrives against what was sent: each (sender, receiver, number) once, in order,
// nothing that was receipted lost. Its methods are for the test's goroutine.
type Talk struct {
	t       testing.TB
	urls    func() []string
	opts    TalkOptions
	ids     []string
	talkers []*talker
	tally   *verify.Tally
	stopped atomic.Bool // no new numbers
	over    atomic.Bool
	running sync.WaitGroup
}

// StartTalk starts agents that connect at urls, two neighbours at the same one; each sends to the next
// two, and all into one space. It returns when everybody is there; the test's end ends it. urls may be called
// at any time, and may name edges that are away.
func StartTalk(t testing.TB, urls func() []string, o TalkOptions) *Talk {
	t.Helper()
	k := &Talk{t: t, urls: urls, opts: o.withDefaults(), tally: verify.New(time.Now, kinds...)}
	n := k.opts.Agents
	k.stopped.Store(true)
	for i := range n {
		k.ids = append(k.ids, fmt.Sprintf("%s-%d", k.opts.Name, i))
	}
	for i := range n {
		k.talkers = append(k.talkers, newTalker(k, i))
	}
	for i := range n {
		k.line(i, (i+1)%n)
		k.line(i, (i+2)%n)
		k.line(i, everybody)
		k.plainLine(i, (i+1)%n)
	}
	for _, a := range k.talkers {
		k.running.Go(a.run)
	}
	t.Cleanup(k.End)
	k.gather()
	return k
}

// gather waits until all are in the space, so that every event concerns everybody, and then lets them talk.
func (t *Talk) gather() {
	t.t.Helper()
	for _, k := range t.talkers {
		if !await.Within(2*patience, k.joined) {
			t.t.Fatalf("%s did not join", k.id)
		}
	}
	t.Mark()
	t.stopped.Store(false)
}

// End has every agent say goodbye. Idempotent.
func (t *Talk) End() {
	t.over.Store(true)
	t.running.Wait()
}

// Kick cuts the socket of an agent, which comes back where it was while that takes it.
func (t *Talk) Kick(i int) { t.talkers[i%len(t.talkers)].kick.Store(true) }

// Move cuts the socket of an agent, which comes back at another edge, by its place among the URLs.
func (t *Talk) Move(i, edge int) {
	t.talkers[i].goal.Store(int32(edge))
	t.Kick(i)
}

// Spin has an agent cut its socket as soon as something has come through it, over and over, or lets it stay.
func (t *Talk) Spin(i int, on bool) { t.talkers[i].spin.Store(on) }

// Stall has an agent read nothing more from its socket, not even pings, or read on.
func (t *Talk) Stall(i int, on bool) { t.talkers[i].stall.Store(on) }

// Bulk has the next streams of each sender to an agent be large: about 4 MiB of them altogether.
func (t *Talk) Bulk(i int) {
	for _, o := range t.sent() {
		if o.to == t.ids[i] {
			o.bulky = o.line.Made() + 1
			o.slim = o.bulky + 12*streak
		}
	}
}

// Abandon has an agent connect again, at another edge, and forget the socket that it has, which stays open and is read
// no more: so it looks when its network changes under it.
func (t *Talk) Abandon(i int) { t.talkers[i].abandon.Store(true) }

// Progress waits until every agent has had n more messages stored for each of
// its addressees, and got n more from each of its senders.
func (t *Talk) Progress(n uint64) {
	t.t.Helper()
	goals := t.further(n)
	t.until(4*patience, "no progress", func() []string { return lacking(goals) })
}

// Normal waits until everything that was handed out until now has arrived, and a little of
// what comes after it, between all but the agents named. It returns how long that took.
func (t *Talk) Normal(within time.Duration, but ...int) time.Duration {
	t.t.Helper()
	began := time.Now()
	goals := t.beyond(3, but...)
	t.until(within, "not normal again", func() []string { return lacking(goals) })
	return time.Since(began)
}

// Loses waits until an agent has lost a connection since Mark.
func (t *Talk) Loses(i int, within time.Duration) {
	t.t.Helper()
	k := t.talkers[i]
	t.until(within, "no connection was lost", func() []string {
		k.mu.Lock()
		defer k.mu.Unlock()
		if k.back.seen.Lost > 0 {
			return nil
		}
		return []string{k.id}
	})
}

// Watch lets the talk go on for a while; the test fails at once for what goes wrong meanwhile.
func (t *Talk) Watch(d time.Duration) {
	t.t.Helper()
	over := time.Now().Add(d)
	t.until(d+patience, "the talk went wrong", func() []string {
		if time.Now().Before(over) {
			return []string{"it was to go on"}
		}
		return nil
	})
}

// Pause has nobody say anything new, or go on.
func (t *Talk) Pause(on bool) { t.stopped.Store(on) }

// Say hands out one number more of everybody to everybody while the talk pauses.
func (t *Talk) Say() {
	for _, o := range t.sent() {
		o.take()
	}
}

// Arrived waits until everything that was handed out has arrived; nothing new may be said meanwhile.
func (t *Talk) Arrived(within time.Duration) {
	t.t.Helper()
	t.until(within, "not all there", t.missing)
}

// Settle stops the senders, waits until everything has arrived, and fails the
// test for what did not. It returns how many frames were accounted for, and how many
// of those their senders were told to have failed.
func (t *Talk) Settle() (total, refused int) {
	t.t.Helper()
	t.stopped.Store(true)
	t.Arrived(4 * patience)
	t.leftovers()
	for _, o := range t.sent() {
		o.line.Close()
		total += int(o.line.Made())
	}
	for in := range t.heard() {
		refused += in.track.Passed()
	}
	t.failed()
	return total, refused
}

// until waits until nothing is behind; the test fails at once for what has gone wrong.
func (t *Talk) until(within time.Duration, what string, behind func() []string) {
	t.t.Helper()
	var left []string
	ok := await.Within(within, func() bool {
		left = behind()
		return t.failed() || len(left) == 0
	})
	if !ok || t.t.Failed() {
		t.t.Fatalf("%s:\n%s\n%s", what, strings.Join(left, "\n"), strings.Join(t.refusals(), "\n"))
	}
}

// failed reports what went wrong so far.
func (t *Talk) failed() (failed bool) {
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, f := range k.faults {
			t.t.Error(f)
			failed = true
		}
		k.faults = nil
		k.mu.Unlock()
	}
	for _, v := range t.tally.News() {
		t.t.Errorf("%s: %s", v.Kind, v.Text)
		failed = true
	}
	return failed
}
