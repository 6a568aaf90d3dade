package client

import (
	"cmp"
	"context"
	"io"
	"slices"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/wire"
)

// mailbox is what other agents have sent and the application has not taken.
type mailbox struct {
	inlog
	c       *Client
	limit   int
	waiters atomic.Int32  // calls that wait for an answer
	room    chan struct{} // holds a token when bytes were freed or a call began to wait

	queue  queue[*Message]        // the log's lock guards it and the fields below
	shed   bool                   // frames are dropped, to be fetched again
	ours   bool                   // what comes now was given to no earlier run of the program
	spaces map[string]uint64      // positions of spaces that an earlier run has left
	asked  map[requestOf]*Message // requests whose givers-up are told to [Message.Context]
	unsaid recent[requestOf]      // requests and streams that were given up, of which nobody was told
}

// requestOf names a request that came in: who has sent it, and its request_id.
type requestOf struct{ from, id string }

func newMailbox(c *Client) *mailbox {
	m := &mailbox{c: c, limit: c.cfg.MaxBuffered, room: make(chan struct{}, 1), queue: newQueue[*Message]()}
	m.inlog = inlog{
		stall: c.cfg.Stall, wake: c.nudge, streams: map[streamKey]*inStream{},
		freed: m.roomy,
	}
	return m
}

// roomy wakes those who wait for room. It is called with the lock held.
func (m *mailbox) roomy() {
	signal(m.room)
	if m.shed {
		m.c.nudge()
	}
}

// expect notes that a call waits for an answer, so that reading goes on; the
// function that it returns ends that.
func (m *mailbox) expect() func() {
	m.waiters.Add(1)
	signal(m.room)
	return func() { m.waiters.Add(-1) }
}

// admit blocks while too much waits for the application. When a call waits
// for an answer it does not block, but at four times the limit it begins to drop.
func (m *mailbox) admit(ctx context.Context) error {
	for m.full() {
		timer := time.NewTimer(m.stall)
		select {
		case <-m.room:
		case <-timer.C:
			m.unblock()
		case <-m.c.goodbye:
			timer.Stop()
			return nil
		case <-ctx.Done():
			timer.Stop()
			return ctx.Err()
		}
		timer.Stop()
	}
	return nil
}

// full decides what admit does.
func (m *mailbox) full() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.bytes <= m.limit {
		return false
	}
	if m.waiters.Load() == 0 {
		return true
	}
	m.shed = m.shed || m.bytes > 4*m.limit
	return false
}

// refetch tells that there is room for what was dropped: only a new connection brings it.
func (m *mailbox) refetch() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.shed && m.bytes <= m.limit/2
}

// unblock cancels the stream that holds up the others, if it is one that does, or else gives up the answer of a call.
func (m *mailbox) unblock() {
	m.mu.Lock()
	now := time.Now()
	key, s := m.stalest(now)
	if s != nil {
		m.endStream(key, s, stalled())
		s.drop()
	}
	var t *Call
	if s == nil {
		t = m.c.stalledCall(now)
	}
	m.mu.Unlock()
	if s != nil {
		s.cancel()
	}
	if t != nil {
		t.fail(stalled())
	}
}

// position returns the position that a registration states, after which delivery goes on. While all that comes may have been given to an earlier run of the
// program it states none, as edges mark nothing behind one that is stated: they know it, and what comes again is dropped.
func (m *mailbox) position() (seq uint64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.known || !m.ours {
		return 0, false
	}
	return m.book.done, true
}

// restart forgets, for a new connection, that frames were dropped on the old one.
func (m *mailbox) restart() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.shed = false
}

// news is what a frame means besides what the mailbox does with it.
type news int

const (
	nothing  news = iota
	headless      // the first part of a stream whose beginning was never seen
	outbound      // an end of a stream that does not come in: one that we send
)

// deliver takes in a message, a part of one, a cancel or an abort.
func (m *mailbox) deliver(f *wire.Frame) news {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.shed || m.err != nil || m.c.closed() {
		return nothing
	}
	ticket, fresh := m.enter(f)
	if !fresh {
		return nothing
	}
	m.ours = m.ours || !f.Redelivered
	key := streamKey{f.From, f.StreamID}
	switch f.Type {
	case "message", "reply":
		m.message(key, f, ticket)
	case "message_chunk", "reply_chunk":
		return m.chunk(key, f, ticket)
	default: // an end of some kind
		m.settle(ticket)
		return m.over(key, f)
	}
	return nothing
}

// message queues a message, or hands a reply to the request that waits for it.
func (m *mailbox) message(key streamKey, f *wire.Frame, ticket uint64) {
	msg := &Message{
		From: f.From, IsReply: f.Type == "reply", Payload: slices.Clone(f.Payload),
		Media: f.Media, named: f.RequestID, Stream: f.Stream, Seq: f.Seq, Redelivered: f.Redelivered, Traceparent: f.Traceparent, c: m.c, ticket: ticket,
	}
	if f.DeadlineMS > 0 {
		msg.Deadline = time.Now().Add(time.Duration(f.DeadlineMS) * time.Millisecond)
	}
	if f.Stream {
		msg.StreamID = f.StreamID
		if old := m.streams[key]; old != nil {
			m.endStream(key, old, abortedStart())
		}
		msg.in = newInStream(&m.inlog, func() { m.c.cancelOf(key) })
		m.streams[key] = msg.in
	}
	if !msg.IsReply && !m.unsaid.empty() {
		m.unsaid.forget(requestOf{msg.From, msg.RequestID()}) // a name that is used again is another request
	}
	if msg.IsReply && m.replied(key, msg) {
		m.settle(ticket)
		return
	}
	m.bytes += msg.size()
	m.queue.push(msg)
}

// replied hands a reply to the request that it answers; it returns false when there is none.
func (m *mailbox) replied(key streamKey, msg *Message) bool {
	taken, wanted := m.c.answer(msg)
	if !taken || msg.in == nil {
		return taken
	}
	msg.in.hand()
	if !wanted {
		m.endStream(key, msg.in, ErrCancelled)
		msg.in.drop()
		msg.in.cancel()
	}
	return true
}

func (m *mailbox) chunk(key streamKey, f *wire.Frame, ticket uint64) news {
	if s := m.streams[key]; s != nil {
		s.push(f.Chunk, ticket)
		return nothing
	}
	m.settle(ticket)
	if m.past.has(key) {
		return nothing
	}
	m.past.add(key)
	return headless
}

// over ends a stream: normally, by a cancel, or by the cluster.
func (m *mailbox) over(key streamKey, f *wire.Frame) news {
	s := m.streams[key]
	if s == nil {
		m.giveUp(requestOf{f.From, cmp.Or(f.StreamID, f.RequestID)}, f.Type)
		return outbound
	}
	switch f.Type {
	case "cancel":
		m.endStream(key, s, ErrCancelled)
	case "error":
		m.endStream(key, s, frameError(f))
	default:
		s.finish(f.Payload)
		m.endStream(key, s, io.EOF)
	}
	return nothing
}

// giveUp tells whoever answers a request that its sender has given it up, now or when it is asked for. It is called with the lock held.
func (m *mailbox) giveUp(key requestOf, typ string) {
	if typ != "cancel" && typ != "error" {
		return
	}
	if msg := m.asked[key]; msg != nil {
		msg.ends(ErrCancelled)
		return
	}
	m.unsaid.add(key)
}

// take returns the next message, waiting for it.
func (m *mailbox) take(ctx context.Context) (*Message, error) { return take(ctx, &m.inlog, &m.queue) }

// taken notes that the application has the message.
func (m *Message) taken() {
	m.c.mail.bytes -= m.size()
	if m.in != nil {
		m.in.hand()
	}
}

// finish ends the mailbox.
func (m *mailbox) finish(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.end(err)
	signal(m.queue.ready)
}

// size is what a message that waits counts.
func (m *Message) size() int { return len(m.Payload) + frameCost }
