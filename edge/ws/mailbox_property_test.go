package ws_test

import (
	"flag"
	"fmt"
	"net/url"
	"strconv"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// TestMailboxKeepsEveryMessageOnceAndInOrder sends, cuts and comes back at
// random. What an agent gets, but for repetitions that are marked, must be
// exactly what the other one sent, however both named it.
func TestMailboxKeepsEveryMessageOnceAndInOrder(t *testing.T) {
	t.Parallel()
	// A fifth of it in short mode.
	if f := flag.Lookup("rapid.checks"); f.Value.String() == f.DefValue {
		if err := flag.Set("rapid.checks", strconv.Itoa(histories)); err != nil {
			t.Fatal(err)
		}
	}
	c := agoratest.Start(t, agoratest.Options{Grace: time.Hour})
	run := 0
	rapid.Check(t, func(rt *rapid.T) {
		run++
		m := &mailbox{T: rt, t: t, c: c, name: strconv.Itoa(run), byID: rapid.Bool().Draw(rt, "by id")}
		m.back(&m.to, "to")
		m.back(&m.from, "from")
		rt.Repeat(map[string]func(*rapid.T){
			"send":           m.send,
			"cut sender":     func(*rapid.T) { m.cut(&m.from) },
			"cut receiver":   func(*rapid.T) { m.cut(&m.to) },
			"sender back":    func(*rapid.T) { m.back(&m.from, "from") },
			"receiver back":  func(*rapid.T) { m.back(&m.to, "to") },
			"read":           func(rt *rapid.T) { m.read(rapid.IntRange(1, 10).Draw(rt, "frames"), 20*time.Millisecond) },
			"ack":            func(*rapid.T) { m.ack() },
			"sender listens": func(*rapid.T) { m.listen(20 * time.Millisecond) },
		})
		m.finish()
	})
}

// mailbox is one sender and one receiver, and what is known of what passed between them.
type mailbox struct {
	*rapid.T
	t    *testing.T
	c    *agoratest.Cluster
	name string
	byID bool // the sender names its frames by id, not by number

	from, to *agoratest.Client // nil while away
	sent     int               // messages made so far: 1, 2, 3 …
	stored   int               // all up to here are known to be stored
	token    string            // of the sender's session
	got      int               // all up to here have come
	last     uint64            // position of the last one that came
	began    bool              // the receiver has a position
}

// frame is message i as the sender names it; sent again it is the same.
func (m *mailbox) frame(i int) string {
	if m.byID {
		return fmt.Sprintf(`{"type":"send","to":"to %s","id":"m-%d","payload":%d}`, m.name, i, i)
	}
	return fmt.Sprintf(`{"type":"send","to":"to %s","n":%d,"payload":%d}`, m.name, i, i)
}

func (m *mailbox) send(rt *rapid.T) {
	for range rapid.IntRange(1, 8).Draw(rt, "messages") {
		m.sent++
		if m.from != nil {
			_ = m.from.Try(m.frame(m.sent)) // if it fails, it is sent again
		}
	}
}

// back connects the sender or the receiver to some edge, unless it is there.
func (m *mailbox) back(who **agoratest.Client, id string) {
	if *who != nil {
		return
	}
	q := url.Values{"agent_id": {id + " " + m.name}}
	if id == "to" && m.began && rapid.Bool().Draw(m.T, "says where it stands") {
		q.Set("last_seq", strconv.FormatUint(m.last, 10))
	}
	if id == "from" && m.token != "" { // what it sends continues
		q.Set("resume_token", m.token)
	}
	edge := rapid.IntRange(0, 2).Draw(m.T, "edge")
	c, _, err := agoratest.TryConnect(m.t, agoratest.Direct{}, m.c.URL(edge), q.Encode(), nil)
	if err != nil {
		m.Fatalf("connect: %v", err)
	}
	w, _ := c.Next(await.Long)
	if w.Type() != "agent.registered" {
		m.Fatalf("%s is welcomed with %q", id, w)
	}
	*who = c
	if id == "to" {
		if !m.began {
			m.last, m.began = w.Uint("last_seq"), true
		}
		return
	}
	m.token = w.Text("resume_token")
	for i := m.stored + 1; i <= m.sent; i++ {
		_ = c.Try(m.frame(i))
	}
}

// cut drops a connection; what had come before counts as come.
func (m *mailbox) cut(who **agoratest.Client) {
	if *who == nil {
		return
	}
	(*who).Drop()
	if who == &m.to {
		m.read(1<<20, 0)
	} else {
		m.listen(0)
	}
	*who = nil
}

// read takes frames of the receiver.
func (m *mailbox) read(most int, within time.Duration) {
	if m.to == nil {
		return
	}
	for range most {
		f, ok := m.to.Next(within)
		if !ok {
			return
		}
		n, again := int(f.Uint("payload")), f.Raw("redelivered") == "true"
		switch {
		case f.Type() != "message":
			m.Fatalf("receiver got %s", f)
		case n == m.got+1:
			m.got = n
		case n > m.got || !again:
			m.Fatalf("receiver got %s after message %d", f, m.got)
		}
		m.last = max(m.last, f.Seq())
	}
}

// listen takes receipts of the sender.
func (m *mailbox) listen(within time.Duration) {
	if m.from == nil {
		return
	}
	for f, ok := m.from.Next(within); ok; f, ok = m.from.Next(within) {
		if f.Type() != "receipt" || f.Text("status") != "stored" {
			m.Fatalf("sender got %s", f)
		}
		n := int(f.Uint("n"))
		if m.byID {
			_, _ = fmt.Sscanf(f.Text("request_id"), "m-%d", &n) // what it can't read stays 0
		}
		m.stored = max(m.stored, n)
	}
}

// ack acknowledges what has come.
func (m *mailbox) ack() {
	if m.to != nil && m.got > 0 {
		_ = m.to.Try(fmt.Sprintf(`{"type":"ack","seq":%d}`, m.last))
	}
}

// finish brings both back, and waits until everything has been stored and has come.
func (m *mailbox) finish() {
	m.back(&m.from, "from")
	m.back(&m.to, "to")
	if !await.Within(await.Long, func() bool {
		m.listen(5 * time.Millisecond)
		m.read(100, 5*time.Millisecond)
		return m.stored == m.sent && m.got == m.sent
	}) {
		m.Fatalf("%d were sent, %d are known to be stored, %d came", m.sent, m.stored, m.got)
	}
	m.from.Close(1000)
	m.to.Close(1000)
}
