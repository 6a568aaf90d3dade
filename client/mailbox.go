package client

import (
	"cmp"
	"context"
	"io"
	"slices"
	"time"

	"github.com/agora-relay/agora/wire"
)

// mailbox is what other agents have sent and the application has not taken.
type mailbox struct {
	*inlog
	sender *sender
	limit  int

	queue  queue[*Message]        // the log's lock guards it and the fields below
	ours   bool                   // what comes now was given to no earlier run of the program
	asked  map[requestOf]*Message // requests whose givers-up are told to [Message.Context]
	unsaid recent[requestOf]      // requests and streams that were given up, of which nobody was told
}

// requestOf names a request that came in: who has sent it, and its request_id.
type requestOf struct{ from, id string }

// newMailLog returns the log of a mailbox. When bytes are freed in it, waiters are told, and the writer where frames
// were dropped.
func newMailLog(stall time.Duration, waiters *waiters, wake func()) *inlog {
	l := &inlog{stall: stall, wake: wake, streams: map[streamKey]*inStream{}}
	l.freed = func() {
		signal(waiters.room)
		if l.shed {
			wake()
		}
	}
	return l
}

// newMailbox returns a mailbox over the sender's log.
func newMailbox(s *sender, limit int) *mailbox {
	return &mailbox{inlog: s.log, sender: s, limit: limit, queue: newQueue[*Message]()}
}

// load makes seq the position after which the mailbox continues, where an earlier run of the program got as far.
func (m *mailbox) load(seq uint64) {
	if seq == 0 {
		return
	}
	m.begin(seq)
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ours = true
}

// admit blocks while too much waits for the application. When a call waits
// for an answer it does not block, but at four times the limit it begins to drop.
func (m *mailbox) admit(ctx context.Context) error {
	for m.full() {
		timer := time.NewTimer(m.stall)
		select {
		case <-m.sender.waiters.room:
		case <-timer.C:
			m.unblock()
		case <-m.sender.life.goodbye:
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
	if !m.sender.waiters.any() {
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
		t = m.sender.asks.stalest(now, m.stall)
	}
	m.mu.Unlock()
	if s != nil {
		s.cancel()
	}
	if t != nil {
		t.fail(stalled())
	}
}

// position returns the position that a registration states, after which delivery continues. While all that comes may
// have been given to an earlier run of the program it states none, as edges mark nothing behind one that is stated:
// they know it, and what comes again is dropped.
func (m *mailbox) position() (seq uint64, known bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.stated = 0
	if !m.known || !m.ours {
		return 0, false
	}
	m.stated = m.book.done
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
	if m.shed || m.err != nil || m.sender.life.closed() {
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
		Media: f.Media, named: f.RequestID, Stream: f.Stream, Seq: f.Seq, Redelivered: f.Redelivered, Traceparent: f.Traceparent, sender: m.sender, box: m, ticket: ticket,
	}
	if f.DeadlineMS > 0 {
		msg.Deadline = time.Now().Add(time.Duration(f.DeadlineMS) * time.Millisecond)
	}
	if f.Stream {
		msg.StreamID = f.StreamID
		if old := m.streams[key]; old != nil {
			m.endStream(key, old, abortedStart())
		}
		msg.in = newInStream(m.inlog, func() { m.cancel(key) })
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
	taken, wanted := m.sender.asks.reply(msg)
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

// giveUp tells the one who answers a request that its sender has given it up, now or when it is asked for. It is called
// with the lock held.
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
func (m *mailbox) take(ctx context.Context) (*Message, error) { return take(ctx, m.inlog, &m.queue) }

// cancel tells the sender of a stream that its rest is not wanted.
func (m *mailbox) cancel(key streamKey) {
	m.sender.out.force(&frame{typ: "cancel", to: laneKey{agent: key.peer}, stream: key.id})
}

// pass moves past a frame that concerns nobody.
func (m *mailbox) pass(f *wire.Frame) {
	f.N = 0 // that of what it speaks of
	m.mu.Lock()
	defer m.mu.Unlock()
	if ticket, fresh := m.enter(f); fresh {
		m.settle(ticket)
	}
}

// taken notes that the application has the message.
func (m *Message) taken() {
	m.box.bytes -= m.size()
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
