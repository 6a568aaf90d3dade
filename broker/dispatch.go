package broker

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
)

// dispatcher hands the messages of the live subjects that a Broker listens to to its inboxes. They come through a few
// channels, each read by one goroutine that never blocks.
type dispatcher struct {
	conn       *conn
	dropped    *atomic.Uint64 // counts live records that reached no inbox
	inboxBytes atomic.Int64   // live bytes kept for one inbox
	chans      []chan *nats.Msg

	mu      sync.RWMutex // guards the fields below
	m       map[string]*subscription
	streams map[string]*streamSubs // those of a stream, by its name
}

// streamSubs is what is listened to in one stream.
type streamSubs struct {
	subjects int
	recent   []*subscription // subscribed a moment ago, the oldest first
	compared comparison
}

// comparison is how far the inboxes of a stream were compared with it.
type comparison struct {
	upTo uint64 // what was stored up to this sequence they have, but those that read the log then; 0 if that is not known
	anew int    // how often the stream was made again, as far as was seen
}

// subscription is one live subject.
type subscription struct {
	at    jslog.Location
	nats  *nats.Subscription // nil until it could be subscribed
	since int64              // ticks when it was

	mu      sync.Mutex // guards the field below; taken under the dispatcher's mu, never before it
	inboxes []*Inbox
}

// liveQueue is how many live records wait in one channel. A full one drops, and those who miss
// something read the log: the bound is memory against how long a goroutine may be held up.
const liveQueue = 4096

func (t *dispatcher) init(c *conn, dropped *atomic.Uint64) {
	t.conn, t.dropped = c, dropped
	t.m, t.streams = make(map[string]*subscription), make(map[string]*streamSubs)
	t.chans = make([]chan *nats.Msg, max(1, runtime.GOMAXPROCS(0)))
	for k := range t.chans {
		t.chans[k] = make(chan *nats.Msg, liveQueue)
	}
}

// start hands the records of each channel to their inboxes until ctx is over, in goroutines of wg's.
func (t *dispatcher) start(ctx context.Context, wg *sync.WaitGroup) {
	for _, c := range t.chans {
		wg.Go(func() {
			for {
				select {
				case m := <-c:
					t.deliver(m)
				case <-ctx.Done():
					return
				}
			}
		})
	}
}

// deliver hands a record to the inboxes of its subject, or tells them of one that is stored.
func (t *dispatcher) deliver(m *nats.Msg) {
	t.mu.RLock()
	sub := t.m[m.Subject]
	t.mu.RUnlock()
	if sub == nil {
		return
	}
	if v := m.Header[nudgeHeader]; len(v) > 0 {
		if seq, err := strconv.ParseUint(v[0], 10, 64); err == nil {
			sub.each(func(i *Inbox) { i.noteStored(seq) })
		}
		return
	}
	seq, last := jslog.Number(m.Header, "Nats-Sequence"), jslog.Number(m.Header, "Nats-Last-Sequence")
	if seq == 0 {
		return // not the server's
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for _, i := range sub.inboxes {
		i.push(m, seq, last)
	}
}

// each calls f for every inbox of the subject. f must not block.
func (t *subscription) each(f func(*Inbox)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.inboxes {
		f(i)
	}
}

// join adds an inbox to its subject, and subscribes when it is the first.
func (t *dispatcher) join(i *Inbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sub := t.m[i.at.Live]
	if sub == nil {
		sub = &subscription{at: i.at, since: agora.Ticks()}
		t.m[i.at.Live] = sub
		of := t.subsOf(i.at.Stream)
		of.subjects++
		of.recent = append(of.recent, sub)
		c := t.chans[jslog.ShardOf("", i.at.Live, len(t.chans))]
		natsSub, err := t.conn.nc.ChanSubscribe(i.at.Live, c)
		if err != nil { // only on a connection that is closed: the log can't be read either
			t.conn.cfg.Log.Warn("listening", "err", err)
		}
		sub.nats = natsSub
	}
	sub.mu.Lock()
	sub.inboxes = append(sub.inboxes, i)
	sub.mu.Unlock()
}

// leave takes an inbox off its subject, and unsubscribes when it was the last.
func (t *dispatcher) leave(i *Inbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	sub := t.m[i.at.Live]
	if sub == nil {
		return
	}
	sub.mu.Lock()
	defer sub.mu.Unlock()
	for k := range sub.inboxes {
		if sub.inboxes[k] == i {
			sub.inboxes = append(sub.inboxes[:k], sub.inboxes[k+1:]...)
			break
		}
	}
	if len(sub.inboxes) > 0 {
		return
	}
	delete(t.m, i.at.Live)
	t.subsOf(i.at.Stream).subjects--
	if sub.nats != nil {
		_ = sub.nats.Unsubscribe() // fails on a closed connection, which has none
	}
}

// markDropped has the inboxes of a subject read the log: a record of theirs was dropped on its way.
func (t *dispatcher) markDropped(subject string) {
	t.mu.RLock()
	sub := t.m[subject]
	t.mu.RUnlock()
	if sub != nil {
		t.dropped.Add(1)
		sub.each((*Inbox).markLagging)
	}
}

// Squeeze has each inbox keep no more than share/whole of Config.InboxBytes
// from now on. What it does not keep is read from the log when it is asked for, so
// nothing is lost by it: it spares memory and costs reads. What an inbox has already stays.
func (b *Broker) Squeeze(share, whole int) {
	b.dispatch.inboxBytes.Store(int64(b.cfg.InboxBytes) * int64(share) / int64(whole))
}

// close ends every inbox.
func (t *dispatcher) close() {
	t.mu.RLock()
	var open []*Inbox
	for _, sub := range t.m {
		sub.each(func(i *Inbox) { open = append(open, i) })
	}
	t.mu.RUnlock()
	for _, i := range open {
		i.Close()
	}
}

// markRestarted has the inboxes of a stream read the log: it was made again.
func (t *dispatcher) markRestarted(stream string) {
	t.mu.Lock()
	c := t.subsOf(stream)
	c.compared = comparison{anew: c.compared.anew + 1}
	t.mu.Unlock()
	for _, sub := range t.of(stream) {
		sub.each((*Inbox).markLagging)
	}
}

// matureAfter is how long other servers may take to learn that a subject is subscribed.
const matureAfter = 700 * time.Millisecond

// subsOf returns what is listened to in a stream; mu is held.
func (t *dispatcher) subsOf(stream string) *streamSubs {
	c := t.streams[stream]
	if c == nil {
		c = &streamSubs{}
		t.streams[stream] = c
	}
	return c
}

// listening reports whether any subject of a stream is listened to.
func (t *dispatcher) listening(stream string) bool {
	t.mu.RLock()
	defer t.mu.RUnlock()
	c := t.streams[stream]
	return c != nil && c.subjects > 0
}

// compared returns how far the inboxes of a stream were compared with it.
func (t *dispatcher) compared(stream string) comparison {
	t.mu.RLock()
	defer t.mu.RUnlock()
	if c := t.streams[stream]; c != nil {
		return c.compared
	}
	return comparison{}
}

// setCompared notes how far they were, unless the stream was made again since.
func (t *dispatcher) setCompared(stream string, c comparison) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if of := t.subsOf(stream); of.compared.anew == c.anew {
		of.compared = c
	}
}

// of returns the subjects of a stream that are listened to.
func (t *dispatcher) of(stream string) []*subscription {
	t.mu.RLock()
	defer t.mu.RUnlock()
	var all []*subscription
	for _, sub := range t.m {
		if sub.at.Stream == stream {
			all = append(all, sub)
		}
	}
	return all
}

// compare tells the inboxes of the subject what an audit that began at at found to be its last record: 0 for none. sure
// says that the answer is as new as the leader's was then. It reports whether some were not compared, as they read the
// log.
func (t *subscription) compare(last uint64, at time.Time, sure bool) (reading bool) {
	t.each(func(i *Inbox) {
		switch i.compare(last, at, sure) {
		case missedRecords:
			i.b.count.repaired.Add(1)
		case catchingUp:
			reading = true
		}
	})
	return reading
}

// matured returns those subjects of a stream that were subscribed at least so long ago, each once.
func (t *dispatcher) matured(stream string, young time.Duration) []*subscription {
	t.mu.Lock()
	defer t.mu.Unlock()
	c := t.streams[stream]
	if c == nil {
		return nil
	}
	n, now := 0, agora.Ticks()
	for n < len(c.recent) && time.Duration(now-c.recent[n].since) >= young {
		n++
	}
	grown := c.recent[:n:n]
	if c.recent = c.recent[n:]; len(c.recent) == 0 {
		c.recent = nil
	}
	return grown
}
