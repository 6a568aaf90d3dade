package demux_test

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// door is a connection with a Demux, as a door has it: what it is offered waits until the test takes it.
type door struct {
	*demux.Demux
	testing.TB
	session  *edge.Session
	welcome  edge.Welcome
	offered  chan *demux.Exchange
	other    chan agora.Message
	over     chan struct{} // closed when Serve is to return
	told     atomic.Int64  // notices
	closings sync.Once
}

func (d *door) Notify(edge.Notice) { d.told.Add(1) }

// Close is the node's: the test closes by itself.
func (d *door) Close(edge.Reason) {}

// enter opens a session of an agent at edge k, and serves what comes by offering it to the test.
func enter(t testing.TB, c *agoratest.Cluster, k int, id agora.AgentID, cfg demux.Config, tune func(*edge.Hello)) *door {
	t.Helper()
	d := &door{TB: t, offered: make(chan *demux.Exchange, 1<<16), other: make(chan agora.Message, 1<<16), over: make(chan struct{})}
	if cfg.Serve == nil {
		cfg.Serve = func(x *demux.Exchange) {
			d.offered <- x
			select {
			case <-d.over:
			case <-done(x):
			}
		}
	}
	cfg.Other = func(v edge.Delivery) {
		if v.Message != nil {
			d.other <- *v.Message
		}
	}
	d.Demux = demux.New(cfg)
	actor, err := c.Node(k).Authenticate(t.Context(), edge.Credentials{})
	if err != nil {
		t.Fatal(err)
	}
	hello := edge.Hello{Card: agora.Agent{ID: id}, Conn: "of " + string(id), Proof: edge.ByReader, Slow: d.Slow}
	if tune != nil {
		tune(&hello)
	}
	if d.session, d.welcome, err = actor.Open(await.Context(t), hello, d); err != nil {
		t.Fatal(err)
	}
	d.Begin(d.session)
	t.Cleanup(func() { d.leave() })
	return d
}

// leave closes the connection without a goodbye.
func (d *door) leave() {
	d.closings.Do(func() {
		close(d.over)
		d.Demux.Close()
		d.session.Closed(false)
	})
}

// readers lets a test say that it is done with an exchange.
var readers sync.Map

func done(x *demux.Exchange) chan struct{} {
	c, _ := readers.LoadOrStore(x, make(chan struct{}))
	return c.(chan struct{})
}

// exchange returns the next one that is offered.
func (d *door) exchange() *demux.Exchange {
	d.Helper()
	x := await.Recv(d, "an exchange is offered", d.offered)
	return x
}

// next reads one part, which must come.
func next(t testing.TB, x *demux.Exchange) demux.Part {
	t.Helper()
	p, err := x.Next(await.Context(t))
	if err != nil {
		t.Fatalf("%q of %s: %v", x.Stream(), x.Peer(), err)
	}
	return p
}

// body returns the text of a part.
func body(p *demux.Part) string { return strings.Trim(string(p.Body), `"`) }

// count reads parts whose texts begin with numbers, which must be those from one to another.
func count(t testing.TB, x *demux.Exchange, from, to int) {
	t.Helper()
	for n := from; n < to; n++ {
		p, err := x.Next(await.Context(t))
		if err != nil {
			t.Fatalf("part %d of %q: %v", n, x.Stream(), err)
		}
		if got, _, _ := strings.Cut(body(&p), " "); got != fmt.Sprint(n) {
			t.Fatalf("got part %q of %q, want %d", got, x.Stream(), n)
		}
	}
}

// ends reads the end of a stream, and that nothing follows.
func ends(t testing.TB, x *demux.Exchange) {
	t.Helper()
	if p := next(t, x); p.Part != agora.End {
		t.Errorf("got part %v %q, want the end", p.Part, p.Body)
	}
	if _, err := x.Next(await.Context(t)); err != io.EOF {
		t.Errorf("behind the end: %v, want EOF", err)
	}
}

// fails reads until an error, whose code it wants.
func fails(t testing.TB, x *demux.Exchange, want agora.Code) error {
	t.Helper()
	for {
		_, err := x.Next(await.Context(t))
		if err == nil {
			continue
		}
		e, is := errors.AsType[*agora.Error](err)
		if !is || e.Code != want {
			t.Fatalf("%q ends with %v, want %s", x.Stream(), err, want)
		}
		return err
	}
}

func start(t testing.TB, o agoratest.Options) *agoratest.Cluster {
	t.Helper()
	o.Redis = true
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	return agoratest.Start(t, o)
}

// peer is an agent at a socket.
type peer struct{ *agoratest.Client }

func registered(t testing.TB, c *agoratest.Cluster, k int, id string) peer {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "", nil)
	a.Send(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}}`)
	a.Expect(`{"type":"agent.registered"}`)
	return peer{a}
}

func (p peer) open(stream string) {
	p.Send(fmt.Sprintf(`{"type":"send","to":"n","stream":true,"stream_id":%q,"payload":"open"}`, stream))
}

// chunks sends numbered chunks, each of so many bytes.
func (p peer) chunks(stream string, from, to, size int) {
	for n := from; n < to; n++ {
		p.Send(fmt.Sprintf(`{"type":"send_chunk","to":"n","stream_id":%q,"chunk":"%d %s"}`, stream, n, strings.Repeat("x", size)))
	}
}

func (p peer) end(stream string) {
	p.Send(fmt.Sprintf(`{"type":"send_end","to":"n","stream_id":%q}`, stream))
}

// say sends a message and waits until it is stored: once more where the mailbox is taken for full, as what was read is
// not known yet.
func (p peer) say(text string) {
	stored, full := fmt.Sprintf(`{"type":"receipt","request_id":%q,"status":"stored"}`, text), fmt.Sprintf(`{"type":"error","request_id":%q,"code":"RATE_LIMITED"}`, text)
	for again := true; again; {
		p.Send(fmt.Sprintf(`{"type":"send","id":%q,"to":"n","payload":%q}`, text, text))
		for {
			f := p.Take(stored)
			if again = f.Match(full) == ""; again || f.Match(stored) == "" {
				break
			}
		}
	}
}
