package simlog_test

import (
	"context"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

// deaf dials connections whose reader can be stopped.
type deaf struct {
	dial func(network, addr string) (net.Conn, error)

	mu   sync.Mutex // guards the fields below
	free sync.Cond  // on mu
	held bool
}

func (d *deaf) hold(held bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.held = held
	d.free.Broadcast()
}

// Dial implements nats.CustomDialer.
func (d *deaf) Dial(network, addr string) (net.Conn, error) {
	c, err := d.dial(network, addr)
	return deafConn{c, d}, err
}

type deafConn struct {
	net.Conn
	d *deaf
}

// Read reads once nobody holds the reader.
func (c deafConn) Read(p []byte) (int, error) {
	c.d.mu.Lock()
	for c.d.held {
		c.d.free.Wait()
	}
	c.d.mu.Unlock()
	return c.Conn.Read(p)
}

// cutsOffWhoDoesNotRead has a client not read while more comes than a server keeps for it. What it missed is in the
// log.
func cutsOffWhoDoesNotRead(l *log) {
	c := l.client()
	c.make(nil)
	d := &deaf{dial: net.Dial}
	if l.sim != nil {
		d.dial = dialer{l.sim}.Dial
	}
	d.free.L = &d.mu
	slow := l.client(nats.SetCustomDialer(d), nats.PingInterval(time.Hour))
	slow.hear()
	c.put("a", 0, 1)
	d.hold(true)
	big := make([]byte, 1<<20)
	for range 100 {
		l.must(c.nc.Publish(l.at("b").Live, big))
	}
	l.must(c.nc.FlushTimeout(await.Long))
	last := c.put("a", 1, 1)
	d.hold(false)
	await.True(l, "who did not read is back", func() bool { return slow.nc.Stats().Reconnects > 0 && slow.nc.IsConnected() })
	m, err := slow.Last(context.Background(), l.stream(), l.at("a").Log())
	l.must(err)
	want(l, "last", m.Seq, last)
}

// disconnects has connections end while records are on their way: of each the client gets an answer or none; what was
// answered is stored.
func disconnects(l *log) {
	c := l.client()
	c.make(nil)
	p := l.at("a")
	var acked []uint64
	for k := range 60 {
		if k == 30 {
			l.cut(c)
		}
		a, err := c.Publish(context.Background(), record(p, strconv.Itoa(k), 0, strconv.Itoa(k)), 200*time.Millisecond)
		if err == nil && !a.Absent && a.Err == nil {
			acked = append(acked, a.Seq)
		}
	}
	await.True(l, "the client is back", func() bool { return c.nc.IsConnected() && c.nc.Stats().Reconnects > 0 })
	c.led(l.stream())
	for _, seq := range acked {
		m, err := c.At(context.Background(), l.stream(), seq)
		l.must(err)
		want(l, "subject", m.Subject, p.Log())
	}
	for k := range 60 { // all of it again: each is stored once
		m := record(p, strconv.Itoa(k), 0, strconv.Itoa(k))
		for a := c.publish(m); a.Err != nil || a.Absent; a = c.publish(m) {
			want(l, "refused for no reason", a.Fenced() && l.nodes > 1, true)
		}
	}
	want(l, "stored", len(c.bodies(p)), 60)
}

// cut ends a client's connection from the other side.
func (l *log) cut(c *client) {
	if l.sim != nil {
		l.sim.Disconnect()
		return
	}
	at := c.nc.ConnectedUrl()
	for k := range l.nodes {
		probe, err := nats.Connect(l.url, l.cluster.Option(k))
		l.must(err)
		name := probe.ConnectedServerName()
		probe.Close()
		if name == c.nc.ConnectedServerName() {
			l.cluster.StopNode(k)
			l.must(l.cluster.StartNode(k))
			return
		}
	}
	l.Fatalf("no server is at %s", at)
}

// isEmptyWhenMadeAnew has servers lose all that they keep. Records and fences are gone, and so are ids.
func isEmptyWhenMadeAnew(l *log) {
	c := l.client()
	c.make(nil)
	p := l.at("a")
	c.store(record(p, "x", c.fence(p, 1), "x"))
	l.empty()
	await.True(l, "the stream is gone", func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_, err := c.js.Stream(ctx, l.stream())
		return errors.Is(err, jetstream.ErrStreamNotFound)
	})
	cfg := c.config()
	cfg.FirstSeq = 5000
	c.create(cfg)
	want(l, "fence", must(c.FenceAt(context.Background(), p.Stream, p.Fence("s")))(l), jslog.Fence{})
	want(l, "the first record, under an id of old", c.store(record(p, "x", 0, "x")), 5000)
}

// must returns v where err is nil.
func must[T any](v T, err error) func(*log) T {
	return func(l *log) T {
		l.Helper()
		l.must(err)
		return v
	}
}

// empty has all servers lose what they keep.
func (l *log) empty() {
	l.Helper()
	if l.sim != nil {
		l.must(l.sim.Empty())
		return
	}
	for k := range l.nodes {
		l.cluster.StopNode(k)
	}
	for k := range l.nodes {
		l.must(os.RemoveAll(filepath.Join(l.dir, "node-"+strconv.Itoa(k))))
		l.must(l.cluster.StartNode(k))
	}
}
