package simlog_test

import (
	"context"
	"errors"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/await"
)

// client is one connection, and how Agora asks the log on it.
type client struct {
	*log
	nc *nats.Conn
	js jetstream.JetStream
	*jslog.Client
}

// client connects to the log, or to one server of it.
func (l *log) client(more ...nats.Option) *client {
	l.Helper()
	opts := []nats.Option{
		nats.MaxReconnects(-1), nats.ReconnectWait(20 * time.Millisecond), nats.ReconnectJitter(0, 0), nats.ReconnectBufSize(-1),
		nats.RetryOnFailedConnect(false), nats.ErrorHandler(func(*nats.Conn, *nats.Subscription, error) {}),
	}
	nc, err := nats.Connect(l.url, append(append(opts, l.options...), more...)...)
	l.must(err)
	l.Cleanup(nc.Close)
	js, err := jetstream.New(nc)
	l.must(err)
	cfg := jslog.Config{
		Read: 10 * time.Second, Tail: 10 * time.Second, Retry: 10 * time.Second, MaxAge: time.Hour, MaxRecords: 1000,
		Clock: jslog.NewClock(time.Now, nil, slog.New(slog.DiscardHandler)), Fenced: func() {}, Absent: func(string) {},
	}
	return &client{log: l, nc: nc, js: js, Client: jslog.New(nc, js, context.WithTimeout, cfg)}
}

func (l *log) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

// want fails the test where got is not as wanted.
func want[T comparable](l *log, what string, got, want T) {
	l.Helper()
	if got != want {
		l.Errorf("%s: %v, want %v", what, got, want)
	}
}

// at is where a name lives in the case's stream.
func (l *log) at(name string) jslog.Location {
	return jslog.Location{Stream: l.stream(), Live: jslog.LivePrefix + "t.agent." + l.shard + "." + name}
}

func (l *log) stream() string { return jslog.StreamName(jslog.AgentKind, l.shard) }

// config is that of a mailbox stream of Agora's.
func (l *log) config() jetstream.StreamConfig {
	tail := jslog.AgentKind + "." + l.shard
	cfg := jetstream.StreamConfig{
		Name: l.stream(), Subjects: []string{jslog.LogPrefix + "*." + tail + ".*", jslog.FencePrefix + "*." + tail + ".*.*"},
		Retention: jetstream.LimitsPolicy, Discard: jetstream.DiscardNew, MaxBytes: 64 << 20, MaxAge: time.Hour, MaxMsgsPerSubject: 1000,
		Storage: jetstream.FileStorage, Replicas: l.nodes, Duplicates: 2 * time.Minute, AllowDirect: true, FirstSeq: 1000,
		RePublish: &jetstream.RePublish{Source: jslog.LogPrefix + ">", Destination: jslog.LivePrefix + ">"},
	}
	if l.memory {
		cfg.Storage = jetstream.MemoryStorage
	}
	return cfg
}

// make makes the case's stream, with what change changes of it. Before a cluster has its leader, requests get no
// answer.
func (c *client) make(change func(*jetstream.StreamConfig)) {
	c.Helper()
	cfg := c.config()
	if change != nil {
		change(&cfg)
	}
	c.create(cfg)
	c.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		_ = c.js.DeleteStream(ctx, cfg.Name) // the servers end soon
	})
}

func (c *client) create(cfg jetstream.StreamConfig) {
	c.Helper()
	var err error
	if !await.Within(await.Long, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
		defer cancel()
		if _, err = c.js.CreateStream(ctx, cfg); errors.Is(err, jetstream.ErrStreamNameAlreadyInUse) {
			err = nil // an answer was lost
		}
		return err == nil
	}) {
		c.Fatal(err)
	}
	c.led(cfg.Name)
}

// led waits until a stream has a leader that answers.
func (c *client) led(stream string) jslog.State {
	c.Helper()
	var s jslog.State
	var err error
	if !await.Within(await.Long, func() bool {
		ctx, cancel := context.WithTimeout(context.Background(), time.Second)
		defer cancel()
		s, err = c.State(ctx, stream, "")
		return err == nil
	}) {
		c.Fatal(err)
	}
	return s
}

// record is a record of a lane, as Agora publishes it. An id of "" is none.
func record(p jslog.Location, id string, fence uint64, body string) *nats.Msg {
	m := nats.NewMsg(p.Log())
	if id != "" {
		m.Header[jslog.MessageID] = []string{id}
	}
	m.Header[jslog.ExpectedLast] = []string{strconv.FormatUint(fence, 10)}
	m.Header[jslog.ExpectedSubject] = []string{p.Fence("s")}
	m.Data = []byte(body)
	return m
}

// publish publishes a message and returns the answer, which must come.
func (c *client) publish(m *nats.Msg) jslog.Ack {
	c.Helper()
	a, err := c.Publish(context.Background(), m, 10*time.Second)
	c.must(err)
	return a
}

// store publishes a message that must be stored. Streams with replicas refuse now and then for no reason, and one that
// was just made may be absent to servers that have not heard of it: then it is published again.
func (c *client) store(m *nats.Msg) uint64 {
	c.Helper()
	a := c.publish(m)
	if c.nodes > 1 && (a.Fenced() || a.Absent) {
		await.Within(await.Long, func() bool {
			a = c.publish(m)
			return !a.Fenced() && !a.Absent
		})
	}
	if a.Err != nil || a.Absent || a.Duplicate || a.Seq == 0 {
		c.Fatalf("%s is answered by %+v, want that it is stored", m.Subject, a)
	}
	return a.Seq
}

// put stores n records of a lane without a fence, with bodies 0, 1, … behind what was put before, and returns the last
// sequence.
func (c *client) put(name string, from, n int) (last uint64) {
	c.Helper()
	for k := range n {
		last = c.store(record(c.at(name), name+"/"+strconv.Itoa(from+k), 0, strconv.Itoa(from+k)))
	}
	return last
}

// code is the server's code of an answer; 0 for none.
func code(a jslog.Ack) jetstream.ErrorCode {
	if a.Err == nil {
		return 0
	}
	return a.Err.ErrorCode
}

// hearing is a subscription to what is republished.
type hearing struct {
	*client
	sub *nats.Subscription
}

// hear subscribes to what is republished of the case's stream, and returns when every server knows.
func (c *client) hear() *hearing {
	c.Helper()
	all := jslog.LivePrefix + "*.agent." + c.shard + ".*"
	sub, err := c.nc.SubscribeSync(all)
	c.must(err)
	c.must(sub.SetPendingLimits(-1, -1))
	c.must(c.nc.Flush())
	h := &hearing{c, sub}
	for k := range c.nodes {
		var more []nats.Option
		if c.cluster != nil {
			more = append(more, c.cluster.Option(k))
		}
		h.heardFrom(c.client(more...), strings.ReplaceAll(all, "*", "probe"))
	}
	return h
}

// heardFrom waits until what another client says is heard.
func (h *hearing) heardFrom(other *client, subject string) {
	h.Helper()
	defer other.nc.Close()
	await.True(h, "what is said at "+subject+" is heard", func() bool {
		h.must(other.nc.Publish(subject, nil))
		h.must(other.nc.Flush())
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		_, err := h.sub.NextMsgWithContext(ctx)
		return err == nil
	})
}

// next returns the next record that is republished.
func (h *hearing) next() *nats.Msg {
	h.Helper()
	for {
		ctx, cancel := context.WithTimeout(context.Background(), await.Long)
		m, err := h.sub.NextMsgWithContext(ctx)
		cancel()
		h.must(err)
		if m.Header != nil {
			return m
		}
	}
}

// sequence is a record's in its stream.
func sequence(m *nats.Msg) uint64 { return jslog.Number(m.Header, "Nats-Sequence") }

// before is the sequence of the one before it on its subject, as it says.
func before(m *nats.Msg) uint64 { return jslog.Number(m.Header, "Nats-Last-Sequence") }
