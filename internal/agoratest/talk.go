package agoratest

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Talk is agents that send each other numbered messages, streams and space
// events through bare sockets, without a pause, whatever happens to the
// cluster; they account for every (sender, receiver, number): each once, in order,
// nothing that was receipted lost. Its methods are for the test's goroutine.
type Talk struct {
	cluster *Cluster
	ids     []string
	talkers []*talker
	stopped atomic.Bool // no new numbers
	over    atomic.Bool
	running sync.WaitGroup
}

// StartTalk starts n agents; each sends to the next two, and all into one space.
func StartTalk(c *Cluster, n int) *Talk {
	t := &Talk{cluster: c}
	t.stopped.Store(true)
	for i := range n {
		t.ids = append(t.ids, fmt.Sprintf("talker-%d", i))
	}
	for i, id := range t.ids {
		k := &talker{talk: t, id: id, in: map[string]uint64{}, holes: map[string][]uint64{}, texts: map[string]int{}}
		for _, to := range []string{t.ids[(i+1)%n], t.ids[(i+2)%n], ""} {
			k.out = append(k.out, &outgoing{to: to, next: 1, failed: map[uint64]bool{}})
		}
		t.talkers = append(t.talkers, k)
	}
	for _, k := range t.talkers {
		t.running.Go(k.run)
	}
	c.t.Cleanup(t.end)
	t.gather()
	return t
}

// gather waits until all are in the space, so that every event concerns everybody, and then lets them talk.
func (t *Talk) gather() {
	t.cluster.t.Helper()
	deadline := time.Now().Add(2 * patience)
	for _, k := range t.talkers {
		for !k.joined() {
			if time.Now().After(deadline) {
				t.cluster.t.Fatalf("%s did not join", k.id)
			}
			<-time.After(5 * time.Millisecond)
		}
	}
	t.stopped.Store(false)
}

func (t *Talk) end() {
	t.over.Store(true)
	t.running.Wait()
}

// Kick cuts the socket of an agent, which comes back at some edge.
func (t *Talk) Kick(i int) { t.talkers[i%len(t.talkers)].kick.Store(true) }

// Progress waits until every agent has had n more messages stored for each of
// its addressees, and got n more from each of its senders.
func (t *Talk) Progress(n uint64) {
	c := t.cluster
	c.t.Helper()
	stored, got := t.counts()
	deadline := time.Now().Add(4 * patience)
	for {
		s, g := t.counts()
		behind := append(lacking(s, stored, n), lacking(g, got, n)...)
		if len(behind) == 0 {
			return
		}
		if t.failed() || time.Now().After(deadline) {
			c.t.Fatalf("no progress:\n%s\n%s", strings.Join(behind, "\n"), strings.Join(t.refusals(), "\n"))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// failed reports what went wrong so far.
func (t *Talk) failed() (failed bool) {
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, f := range k.faults {
			t.cluster.t.Error(f)
			failed = true
		}
		k.faults = nil
		k.mu.Unlock()
	}
	return failed
}

// counts returns how far everybody is, by what is sent and by what is got.
func (t *Talk) counts() (stored, got map[string]uint64) {
	stored, got = map[string]uint64{}, map[string]uint64{}
	for i, k := range t.talkers {
		n := len(t.ids)
		k.mu.Lock()
		for _, o := range k.out {
			stored[k.id+" to "+o.to] = o.stored
		}
		for _, from := range []string{t.ids[(i+n-1)%n], t.ids[(i+n-2)%n]} {
			got[k.id+" from "+from] = k.in[from]
		}
		for _, from := range t.ids {
			got[k.id+" in the space from "+from] = k.in["#"+from]
		}
		k.mu.Unlock()
	}
	return stored, got
}

// lacking says what is not n further than before.
func lacking(now, before map[string]uint64, n uint64) (behind []string) {
	for what, b := range before {
		if now[what] < b+n {
			behind = append(behind, fmt.Sprintf("%s: %d, was %d", what, now[what], b))
		}
	}
	slices.Sort(behind)
	return behind
}

// refusals returns the last error that each sender got about each addressee.
func (t *Talk) refusals() (all []string) {
	for _, k := range t.talkers {
		k.mu.Lock()
		for _, o := range k.out {
			if o.refusal != "" && o.stored < o.made {
				all = append(all, fmt.Sprintf("%s to %q, stored %d, sent %d of %d: %s", k.id, o.to, o.stored, o.next-1, o.made, o.refusal))
			}
		}
		k.mu.Unlock()
	}
	return all
}

// Settle stops the senders, waits until everything has arrived, and fails the
// test for what did not. It returns how many frames were accounted for, and how many
// of those their senders were told to have failed.
func (t *Talk) Settle() (total, refused int) {
	c := t.cluster
	c.t.Helper()
	t.stopped.Store(true)
	deadline := time.Now().Add(4 * patience)
	for {
		missing := t.missing()
		if t.failed() || missing == "" {
			return t.account()
		}
		if time.Now().After(deadline) {
			c.t.Fatalf("not settled: %s\n%s", missing, strings.Join(t.refusals(), "\n"))
		}
		<-time.After(10 * time.Millisecond)
	}
}

// missing says what was sent and is not there; empty when all is. What was
// refused for good at the end counts as there.
func (t *Talk) missing() string {
	made := map[string]uint64{}
	for _, k := range t.talkers {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, o := range k.out {
			if o.stored != o.made {
				return fmt.Sprintf("%s has %d of %d stored for %q", k.id, o.stored, o.made, o.to)
			}
			last := o.made
			for o.failed[last] {
				last--
			}
			made[k.id+">"+o.to] = last
		}
	}
	for _, k := range t.talkers {
		for _, from := range t.ids {
			if want, ok := made[from+">"+k.id]; ok && k.in[from] != want {
				return fmt.Sprintf("%s got %d of %d from %s", k.id, k.in[from], want, from)
			}
			if want := made[from+">"]; k.in["#"+from] != want {
				return fmt.Sprintf("%s got %d of %d from %s in the space", k.id, k.in["#"+from], want, from)
			}
		}
	}
	return ""
}

// account compares what was passed over with what was refused.
func (t *Talk) account() (total, refused int) {
	failed := map[string]map[uint64]bool{}
	for _, k := range t.talkers {
		k.mu.Lock()
		defer k.mu.Unlock()
		for _, o := range k.out {
			failed[k.id+">"+o.to] = o.failed
			refused += len(o.failed)
			total += int(o.made)
		}
	}
	for _, k := range t.talkers {
		for from, holes := range k.holes {
			lane := from + ">" + k.id
			if space, ok := strings.CutPrefix(from, "#"); ok {
				lane = space + ">"
			}
			for _, n := range holes {
				if !failed[lane][n] {
					t.cluster.t.Errorf("%s never got number %d of %s, which was not refused", k.id, n, from)
				}
			}
		}
	}
	return total, refused
}
