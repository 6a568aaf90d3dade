package iat

import (
	"cmp"
	"context"
	"encoding/binary"
	"encoding/hex"
	"hash/fnv"
	"io"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/buffer"
	"github.com/agora-relay/agora/internal/pump"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// sink is what a downlink writes to: events, or frames of a WebSocket. One goroutine calls it.
type sink interface {
	begin(dst []byte, seq uint64) []byte                    // appends what stands before an envelope
	end(dst []byte, at int, seq uint64) []byte              // appends what stands behind an envelope that begins at a place in dst
	reconnect(dst []byte, after time.Duration) []byte       // appends that the agent is to come back elsewhere
	probe(dst []byte, data uint64) (more []byte, err error) // asks for a sign of life, which the session's Pong is told
	write(b []byte) error                                   // writes what was appended, and returns when the socket has taken it
	look() (again time.Duration)                            // looks for the signs of life that were asked for; 0 where none is missing
}

// courier takes what a session has for its agent to a sink.
type courier struct {
	door    *Door
	session *edge.Session
	link    *link
	sink    sink
	streams map[stream]string // ids of the envelopes that opened streams to the agent; made when there is one
	out     *buffer.Buffer    // what is written next; nil while there is nothing
	now     time.Time         // when what is delivered is said to be
	talks   bool              // something was delivered since busy began
	wait    *time.Timer       // of more; made when something is delivered
	retry   *pump.Retry       // of a pull; nil while none has failed
}

// stream names a stream to the agent.
type stream struct {
	peer agora.AgentID
	name string
}

const (
	pullBytes  = 64 << 10
	maxRetry   = 2 * time.Second
	maxStreams = 4096 // whose names are kept in mind
	recallTime = 5 * time.Second
	lingers    = 250 * time.Millisecond // how long a goroutine that writes waits for more
)

// run writes until the link ends, the sink fails or ctx is over, and returns why. It waits on a stack that never grows: what there is goes deep, into
// the log and down to the socket, and is written by a goroutine that ends once there has been nothing for a while.
func (c *courier) run(ctx context.Context) edge.Reason {
	defer func() { c.retry.Stop() }()
	for {
		select {
		case <-c.link.signal:
		case <-ctx.Done():
			return edge.Reason{Cause: edge.Lost}
		}
		var why *edge.Reason
		var again time.Duration
		web.Apart(func() { why, again = c.busy(ctx) })
		if why != nil {
			return *why
		}
		if again > 0 {
			time.AfterFunc(again, c.link.tell)
		}
	}
}

// busy writes what there is: for as long as something comes time and again where anything was delivered, as mostly more does. It returns why the link is to end
// where it is, and when it is to be called again all the same; 0 for not.
func (c *courier) busy(ctx context.Context) (why *edge.Reason, again time.Duration) {
	defer c.drop()
	c.talks = false
	for {
		why, err := c.round(ctx)
		if err != nil {
			return &edge.Reason{Cause: edge.Lost, Text: err.Error()}, 0
		}
		again := c.sink.look()
		if why != nil || !c.talks {
			return why, again
		}
		if !c.more(ctx, cmp.Or(again, lingers)) && (again == 0 || ctx.Err() != nil) {
			return nil, 0
		}
	}
}

// more waits for a time, and reports whether there is something to take by then.
func (c *courier) more(ctx context.Context, d time.Duration) bool {
	if c.wait == nil {
		c.wait = time.NewTimer(d)
	} else {
		c.wait.Reset(d)
	}
	defer c.wait.Stop()
	select {
	case <-c.link.signal:
		return true
	case <-c.wait.C:
	case <-ctx.Done():
	}
	return false
}

// round writes what there is. It returns why the link is to end where it is.
func (c *courier) round(ctx context.Context) (*edge.Reason, error) {
	for {
		items, pull, why := c.link.take()
		for i := range items {
			if err := c.tell(&items[i]); err != nil {
				return nil, err
			}
		}
		if why != nil {
			if why.Code != "" {
				c.fault(&iat.Fault{Err: agora.Errorf(why.Code, "%s", why.Text)})
			}
			return why, c.flush()
		}
		if len(items) > 0 {
			if err := c.flush(); err != nil {
				return nil, err
			}
		}
		if !pull {
			return nil, nil
		}
		if err := c.pull(ctx); err != nil {
			return nil, err
		}
	}
}

// pull writes what the session has, until it has nothing for now.
func (c *courier) pull(ctx context.Context) error {
	for {
		ds, err := c.session.Pull(ctx, pullBytes, waits)
		if len(ds) > 0 {
			c.talks = true
			c.now = c.door.now()
			c.door.stats.Moved.Add(int64(len(ds)))
		}
		for i := range ds {
			c.deliver(ctx, &ds[i])
		}
		c.session.Queued()
		switch {
		case err == nil:
			c.retry.Over()
		case len(ds) == 0 && ctx.Err() == nil:
			c.again()
		}
		if len(ds) == 0 {
			return nil
		}
		if err := c.flush(); err != nil {
			return err
		}
		c.session.Written()
	}
}

// waits is told before a pull waits, which is nothing to a goroutine of its own.
func waits() {}

// add adds an envelope, as say appends it.
func (c *courier) add(seq uint64, say func(dst []byte) []byte) {
	b := c.room()
	b.B = c.sink.begin(b.B, seq)
	at := len(b.B)
	b.B = c.sink.end(say(b.B), at, seq)
}

// room returns what is written next.
func (c *courier) room() *buffer.Buffer {
	if c.out == nil {
		c.out = buffer.Get()
	}
	return c.out
}

// flush writes what was added.
func (c *courier) flush() error {
	if c.out == nil {
		return nil
	}
	err := c.sink.write(c.out.B)
	c.drop()
	return err
}

// drop gives back what nobody writes any more.
func (c *courier) drop() {
	if c.out != nil {
		buffer.Put(c.out)
		c.out = nil
	}
}

// again has the session pulled once more in a moment.
func (c *courier) again() {
	if c.retry == nil {
		c.retry = &pump.Retry{Longest: maxRetry}
	}
	c.retry.Again(c.link.Wake)
}

// deliver adds a delivery.
func (c *courier) deliver(ctx context.Context, d *edge.Delivery) {
	m := d.Message
	if m == nil || !iat.Shows(m) {
		c.note(m)
		return
	}
	t := iat.Delivery{Redelivered: d.Redelivered, DeadlineMS: d.DeadlineMS, Time: c.now, Parent: m.Meta.Parent}
	if m.Meta.Dialect != iat.Dialect {
		t.ID, t.Parent = c.name(ctx, m)
		t.Trace = madeTrace(m)
	}
	c.note(m)
	if m.Kind == agora.Reply && (m.Part == agora.Whole || m.Part.Ends()) && c.link.ends(m.From, t.Parent) && m.Meta.Dialect != iat.Dialect {
		c.door.done(ctx, presence.Execute{Tenant: m.To.Tenant, Callee: m.From, Caller: c.session.Agent(), Request: t.Parent})
	}
	c.add(m.Seq, func(dst []byte) []byte { return iat.AppendEnvelope(dst, m, t) })
}

// name returns the ids that the envelope of a message of another dialect has, empty for what goes by its position, and names.
func (c *courier) name(ctx context.Context, m *agora.Message) (id, parent string) {
	if m.Kind == agora.Request && m.Part <= agora.Start {
		return requestID(m), m.Meta.Parent
	}
	if parent = m.Meta.Parent; parent == "" && m.Stream != "" {
		k := stream{m.From, m.Stream}
		opener, known := c.streams[k]
		if !known && m.Part != agora.Start && m.Kind != agora.Control {
			c.recall(ctx, k, m.Seq)
			opener = c.streams[k]
		}
		parent = cmp.Or(opener, m.Stream)
	}
	return "", parent
}

// recall looks in the log for the beginning of a stream that an earlier downlink has delivered, before a position.
func (c *courier) recall(ctx context.Context, k stream, before uint64) {
	ctx, cancel := context.WithTimeout(ctx, recallTime)
	defer cancel()
	r := c.session.Catchup(0, func() {})
	defer r.Close()
	for {
		ds, err := r.Next(ctx, pullBytes)
		if err != nil || len(ds) == 0 { // then it goes by its own name
			return
		}
		for i := range ds {
			m := ds[i].Message
			if m.Seq >= before {
				return
			}
			if m.From == k.peer && m.Stream == k.name && m.Part == agora.Start {
				c.note(m)
				c.session.NameStream(k.peer, k.name, c.streams[k])
			}
		}
	}
}

// note keeps in mind which envelope has opened a stream.
func (c *courier) note(m *agora.Message) {
	if m == nil || m.Stream == "" || m.Meta.Dialect == iat.Dialect || m.Part == agora.Chunk {
		return
	}
	k := stream{m.From, m.Stream}
	switch {
	case m.Part == agora.Start && len(c.streams) < maxStreams:
		if c.streams == nil {
			c.streams = map[stream]string{}
		}
		if c.streams[k] = requestID(m); m.Kind == agora.Reply {
			c.streams[k] = m.Meta.Parent
		} else if m.Meta.Request == "" {
			c.session.NameStream(m.From, m.Stream, c.streams[k])
		}
	case m.Part.Ends():
		delete(c.streams, k)
	}
}

// requestID is the id of the envelope that a request of another dialect becomes.
func requestID(m *agora.Message) string {
	switch {
	case m.Meta.Request != "":
		return m.Meta.Request
	case m.Media == "" && wire.RequestIDOf(m.Body) != "":
		return wire.RequestIDOf(m.Body)
	case m.Stream != "":
		return m.Stream
	}
	return seqID(m)
}

// madeTrace is the trace id of an envelope that the door makes of a message that belongs to no trace: the same whenever it is delivered again.
func madeTrace(m *agora.Message) string {
	h := fnv.New128a()
	io.WriteString(h, string(m.From))
	return hex.EncodeToString(binary.BigEndian.AppendUint64(h.Sum(nil)[:8], m.Seq))
}

// seqID is the id of an envelope that the door makes: the same whenever it is delivered again.
func seqID(m *agora.Message) string { return "agora-" + strconv.FormatUint(m.Seq, 10) }

// tell adds what is told beside deliveries.
func (c *courier) tell(i *item) (err error) {
	if i.envelope != nil {
		c.add(0, func(dst []byte) []byte { return append(dst, i.envelope...) })
		return nil
	}
	switch n := &i.notice; n.Kind {
	case edge.NoticePing:
		b := c.room()
		b.B, err = c.sink.probe(b.B, n.Data)
	case edge.NoticeReconnect:
		b := c.room()
		b.B = c.sink.reconnect(b.B, n.After)
	case edge.NoticeFault:
		id := n.RequestID
		if id == "" {
			id = n.Stream
		}
		c.fault(&iat.Fault{Err: n.Err, ID: id, From: string(c.session.Agent())})
	case edge.NoticeReceipt:
		c.receipt(n)
	}
	return err
}

// fault adds an error.
func (c *courier) fault(f *iat.Fault) {
	c.door.stats.Errors.Count(f.Err.Code)
	c.add(0, func(dst []byte) []byte { return iat.AppendFault(dst, c.door.says(), f) })
}

// receipt adds the receipt of an envelope, or of all chunks of a stream up to one.
func (c *courier) receipt(n *edge.Notice) {
	e := c.door.says()
	e.Type, e.Parent, e.To = iat.Notification, n.RequestID, string(c.session.Agent())
	if e.Parent == "" {
		e.Parent = n.Stream
	}
	e.Payload = append(strconv.AppendUint([]byte(`{"action":"`+iat.ActionReceipt+`","status":"stored","seq":`), n.Seq, 10), '}')
	c.add(0, e.Append)
}
