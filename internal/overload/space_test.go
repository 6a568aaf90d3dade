//go:build chaos

package overload

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/loadgen"
)

// room is a space with many members at all edges, one of which may be stuck.
type room struct {
	t       *testing.T
	members []*agent
	reading sync.WaitGroup

	mu   sync.Mutex // guards the fields below
	took []time.Duration
	last map[string]uint64 // number of the last event, by member
}

// fill has agents join, and all but the first listen: each that joins is told to all.
func fill(t *testing.T, c *agoratest.Processes, n int) *room {
	t.Helper()
	r := &room{t: t, members: make([]*agent, n), last: map[string]uint64{}}
	crowd(t, n, func(k int) error {
		a, err := join(c.Edges[k%3].URL(), fmt.Sprintf("member-%d", k), loadgen.Target{})
		if err != nil {
			return err
		}
		r.members[k] = a
		if err := a.say(`{"type":"space.join","id":"join","space":"room"}`); err != nil {
			return err
		}
		for {
			f, err := a.Next()
			if err != nil {
				return err
			}
			if field(f, "type") == "space.joined" {
				break
			}
		}
		if k > 0 {
			r.hear(a)
		}
		return nil
	})
	t.Cleanup(func() {
		for _, a := range r.members {
			a.socket.Close()
		}
		r.reading.Wait()
	})
	return r
}

// hear has a member listen until its connection is gone.
func (r *room) hear(a *agent) {
	r.reading.Go(func() {
		for want := uint64(1); ; {
			f, err := a.Next()
			if err != nil {
				return
			}
			if field(f, "type") != "space.event" {
				continue
			}
			if n := number(f, "key"); n != want {
				r.t.Errorf("%s got event %d, want %d", a.id, n, want)
				return
			}
			r.mu.Lock()
			r.took = append(r.took, time.Since(time.Unix(0, int64(number(f, "at")))))
			r.last[a.id] = want
			r.mu.Unlock()
			want++
		}
	})
}

// publish publishes events from..to at a pace and returns the members' median, once those have all of them.
func (r *room) publish(by *agent, from, to, size int, heard []*agent) time.Duration {
	r.t.Helper()
	r.mu.Lock()
	r.took = nil
	r.mu.Unlock()
	for n := from; n <= to; n++ {
		err := by.say(`{"type":"space.publish","space":"room","n":%d,"data":{"key":%d,"at":%d,"body":%q}}`,
			n, n, time.Now().UnixNano(), strings.Repeat("x", size))
		if err != nil {
			r.t.Fatal(err)
		}
		<-time.After(20 * time.Millisecond)
	}
	until(r.t, time.Minute, fmt.Sprintf("all members have event %d", to), func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return !slices.ContainsFunc(heard, func(a *agent) bool { return r.last[a.id] < uint64(to) })
	})
	r.mu.Lock()
	defer r.mu.Unlock()
	slices.Sort(r.took)
	return r.took[len(r.took)/2]
}

// TestAStuckMemberOfALargeSpaceDisturbsNobody has one of many members read nothing, while more comes than the system
// takes for it.
func TestAStuckMemberOfALargeSpaceDisturbsNobody(t *testing.T) {
	oneIsStuck(t, 300, 96<<10)
}

// TestASpaceOfThousandsWithAStuckMemberGoesOn has so many members that the roster can't be told whole at every join.
func TestASpaceOfThousandsWithAStuckMemberGoesOn(t *testing.T) {
	oneIsStuck(t, many(2000, 400), 2<<10)
}

// oneIsStuck has one of n members read nothing while events of a size come: the others notice nothing,
// memory stays bounded, and later it gets everything.
func oneIsStuck(t *testing.T, n, size int) {
	c := start(t, "--session.timeout", "10m") // of the stuck one, which says nothing from its join on
	r := fill(t, c, n)
	stuck, heard := r.members[0], r.members[1:]
	stuck.narrow()
	const events = 64
	memory := watchMemory(c.Edges[0])
	halfLoad(t, c.URLs()...)
	before := r.publish(r.members[1], 1, events, 100, heard)
	now := r.publish(r.members[1], events+1, 2*events, size, heard)
	again := r.publish(r.members[1], 2*events+1, 3*events, 100, heard)
	t.Logf("members' median: %v before, %v with large events, %v after, one stuck", before, now, again)
	if again > 3*max(before, 5*time.Millisecond) {
		t.Errorf("members' median went from %v to %v, want three times that at most", before, again)
	}
	memory.bounded(t, len(r.members)/3)
	stuck.widen()
	r.hear(stuck)
	until(t, time.Minute, "the stuck member has everything", func() bool {
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.last[stuck.id] == uint64(3*events)
	})
}
