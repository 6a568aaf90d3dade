package ws_test

import (
	"fmt"
	"math/rand/v2"
	"net/url"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// A member that comes back and joins with last_seq gets everything after that position behind the answer, in order, and
// marked where it may have been given before: wherever its sockets were cut between the registration, what comes then,
// and the join. Each has a space of its own, so that most edges read that space again for it.
func TestAMemberThatJoinsAgainGetsAllBehindWhatItNames(t *testing.T) {
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{Grace: await.Long})
	publisher := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "agent_id=publisher", nil)
	publisher.Take("a welcome")
	wanted := make(chan want, 16)
	var members sync.WaitGroup
	for k := range 6 {
		m := &member{t: t, c: c, room: fmt.Sprint("room-", k), rand: rand.New(rand.NewPCG(uint64(k), 1)), publish: wanted}
		publisher.Send(fmt.Sprintf(`{"type":"space.join","id":"j","space":"%s"}`, m.room))
		publisher.Await(`{"type":"space.joined"}`)
		members.Go(func() {
			for range returns {
				if m.comeBack(); t.Failed() {
					break
				}
			}
			m.conn.Drop()
		})
	}
	go func() { members.Wait(); close(wanted) }()
	for w := range wanted {
		for n := w.after + 1; n <= w.upTo; n++ {
			publisher.Send(fmt.Sprintf(`{"type":"space.publish","space":"%s","n":%d,"data":{}}`, w.room, n))
		}
		publisher.Await(fmt.Sprintf(`{"type":"receipt","space":"%s","n":%d}`, w.room, w.upTo))
	}
}

// want is events that are to be published: those numbered from after on, and up to.
type want struct {
	room        string
	after, upTo int
}

// member is one agent in a space, and what it was given on all of its sockets.
type member struct {
	t    *testing.T
	c    *agoratest.Cluster
	room string
	rand *rand.Rand
	conn *agoratest.Client // the last one
	said []string          // what came on it

	publish   chan<- want
	published int // events that were wanted so far

	most uint64 // the highest position that a socket gave
	seq  uint64 // where it stands: it joined behind that, or has handled it
	n    int    // the number of the event there
	in   bool   // it has joined
}

// comeBack connects, after a cut or by taking the session over, reads a little, joins where it stands, and reads a
// little more.
func (m *member) comeBack() {
	old := m.conn
	if old != nil && m.rand.IntN(3) > 0 {
		old.Drop()
	}
	m.said = nil
	if m.in {
		w := want{m.room, m.published, m.published + 1 + m.rand.IntN(60)}
		m.publish <- w
		m.published = w.upTo
	}
	m.conn = agoratest.Connect(m.t, agoratest.Direct{}, m.c.URL(m.rand.IntN(3)), url.Values{"agent_id": {"member of " + m.room}}.Encode(), nil)
	if m.in && m.rand.IntN(10) == 0 {
		return // cut before the answer
	}
	if w, ok := m.next(await.Long); !ok || w.Type() != "agent.registered" {
		old.Drop() // it is still there
		return
	}
	if !m.in {
		m.conn.Send(fmt.Sprintf(`{"type":"space.join","id":"j","space":"%s"}`, m.room))
		m.in, m.seq = true, m.conn.Await(`{"type":"space.joined"}`).Seq()
	} else if !m.join() {
		return
	}
	m.handle(m.rand.IntN(m.published - m.n + 1))
}

// join joins where the member stands, and takes what comes before the answer. It returns false where it is cut off
// before that.
func (m *member) join() bool {
	last := uint64(0)
	m.take(m.rand.IntN(3), m.moment(), &last)
	if m.rand.IntN(10) == 0 {
		return false
	}
	m.conn.Send(fmt.Sprintf(`{"type":"space.join","id":"j","space":"%s","last_seq":%d}`, m.room, m.seq))
	if m.rand.IntN(5) == 0 {
		m.take(m.rand.IntN(3), m.moment(), &last)
		return false
	}
	return m.take(1<<30, await.Long, &last)
}

// moment is how long a frame is waited for that need not come: a cut may be anywhere.
func (m *member) moment() time.Duration {
	return time.Duration(m.rand.Int64N(int64(4 * time.Millisecond)))
}

// take takes frames up to the answer to a join, which it returns true for: they come in order.
func (m *member) take(most int, within time.Duration, last *uint64) (joined bool) {
	for range most {
		f, ok := m.next(within)
		if !ok {
			return false
		}
		switch {
		case f.Type() == "space.joined":
			if f.Seq() != m.seq {
				m.fail("the answer stands at %d", f.Seq())
			}
			return true
		case f.Seq() <= *last:
			m.fail("%d comes behind %d, and there was no join", f.Seq(), *last)
		}
		*last = f.Seq()
		m.given(f)
	}
	return false
}

// handle takes events: each follows the one before it.
func (m *member) handle(most int) {
	for range most {
		f, ok := m.next(await.Long)
		if !ok {
			return
		}
		if f.Type() != "space.event" {
			continue
		}
		n := int(f.Uint("n"))
		if f.Seq() <= m.seq || n != m.n+1 {
			m.fail("event %d, at %d, comes behind event %d, at %d", n, f.Seq(), m.n, m.seq)
			return
		}
		m.given(f)
		m.seq, m.n = f.Seq(), n
	}
}

// given notes what a socket gave. What may have been given before is marked.
func (m *member) given(f agoratest.Frame) {
	if f.Seq() <= m.most && f.Raw("redelivered") != "true" {
		m.fail("%s was given before, and is not marked", f)
	}
	m.most = max(m.most, f.Seq())
}

func (m *member) next(within time.Duration) (agoratest.Frame, bool) {
	f, ok := m.conn.Next(within)
	if !ok && within == await.Long && m.conn.Gone() == nil {
		m.fail("nothing comes any more")
	}
	m.said = append(m.said, fmt.Sprintf("%s %d %d %s", f.Type(), f.Seq(), f.Uint("n"), f.Raw("redelivered")))
	return f, ok
}

func (m *member) fail(format string, args ...any) {
	m.t.Errorf("%s, standing at %d: %s\nof this socket: %q", m.room, m.seq, fmt.Sprintf(format, args...), m.said[max(0, len(m.said)-30):])
}
