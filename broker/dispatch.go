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
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// dispatcher hands the messages of the live subjects that a Broker listens to to its inboxes. They come through a few channels,
// each read by one goroutine that never blocks.
type dispatcher struct {
	conn    *conn
	dropped *atomic.Uint64 // counts live records that reached no inbox
	chans   []chan *nats.Msg

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

// start runs until ctx is over, in goroutines of wg's.
func (t *dispatcher) start(ctx context.Context, wg *sync.WaitGroup) {
	for _, c := range t.chans {
		wg.Go(func() { t.run(ctx, c) })
	}
}

// run hands the records of one channel to their inboxes.
func (t *dispatcher) run(ctx context.Context, c chan *nats.Msg) {
	for {
		select {
		case m := <-c:
			t.deliver(m)
		case <-ctx.Done():
			return
		}
	}
}

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
	sub.each(func(i *Inbox) { i.push(m, seq, last) })
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
		t.subsOf(i.at.Stream).add(sub)
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

// markRestarted has the inboxes of a stream read the log: it was made anew.
func (t *dispatcher) markRestarted(stream string) {
	t.mu.Lock()
	c := t.subsOf(stream)
	c.compared = comparison{anew: c.compared.anew + 1}
	t.mu.Unlock()
	for _, sub := range t.of(stream) {
		sub.each((*Inbox).markLagging)
	}
}

// push queues a live record, if it follows and fits.
func (i *Inbox) push(m *nats.Msg, seq, last uint64) {
	i.mu.Lock()
	q := liveRecord{seq: seq, last: last, size: m.Size(), m: m}
	woken := false
	switch {
	case i.closed || seq <= i.end:
	case i.lagging && i.staging:
		i.stage(q)
	case i.lagging:
		i.b.count.dropped.Add(1)
	case !i.follows(last) || !i.hasRoom(q.size):
		i.b.count.dropped.Add(1)
		if !guard.Gaps {
			i.end = seq
			break
		}
		i.lagging = true
		woken = i.disarm()
	default:
		i.enqueue(q)
		woken = i.disarm()
	}
	i.highest = max(i.highest, seq)
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// follows reports whether nothing can be missing between what the inbox has and a live record behind the one given. A record
// that names an older one, or none, does not say so: the last one that was got has grown too old since, or it is of a log made
// anew, of which no word has come yet. The lock is held.
func (i *Inbox) follows(last uint64) bool {
	return last == i.end && (last != 0 || i.b.streams.confirmed(i.at.Stream))
}

func (i *Inbox) hasRoom(size int) bool { return i.bytes+size <= int(i.b.inboxBytes.Load()) }

// enqueue adds a record that follows the last one. The lock is held.
func (i *Inbox) enqueue(q liveRecord) {
	i.queue = append(i.queue, q)
	i.bytes += q.size
	i.endSize = q.size + jslog.Headroom
	i.end, i.tail = q.seq, q.seq<<agora.SeqShift|uint64(record.Count(q.m.Data)-1)
}

// stage keeps a live record while the end of the log is being read. The lock is held.
func (i *Inbox) stage(q liveRecord) {
	if n := len(i.staged); n > 0 && (q.seq <= i.staged[n-1].seq) {
		return
	} else if n > 0 && (q.last != i.staged[n-1].seq || !i.hasRoom(q.size)) {
		i.unstage()
	}
	if !i.hasRoom(q.size) {
		i.b.count.dropped.Add(1)
		return
	}
	i.staged = append(i.staged, q)
	i.bytes += q.size
}

// unstage drops what is staged. The lock is held.
func (i *Inbox) unstage() {
	for k := range i.staged {
		i.bytes -= i.staged[k].size
	}
	i.b.count.dropped.Add(uint64(len(i.staged)))
	i.staged = nil
}

// join queues what is staged, if it follows what was read. The lock is held.
func (i *Inbox) join() {
	first := 0
	for first < len(i.staged) && i.staged[first].seq <= i.end {
		first++
	}
	if first == len(i.staged) || !i.follows(i.staged[first].last) {
		return
	}
	for k, q := range i.staged {
		i.bytes -= q.size
		if k >= first {
			i.enqueue(q)
		}
	}
	i.staged = nil
}

// noteStored has the inbox read the log when a record is stored that it has not got.
func (i *Inbox) noteStored(seq uint64) {
	i.mu.Lock()
	woken := false
	if seq > i.end && !i.closed {
		i.highest = max(i.highest, seq)
		i.lagging = true
		woken = i.disarm()
	}
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// markLagging has the log read.
func (i *Inbox) markLagging() {
	i.mu.Lock()
	i.lagging = true
	woken := !i.closed && i.disarm()
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// disarm reports whether the reader waits to be woken; it is then no more.
func (i *Inbox) disarm() bool {
	was := i.armed
	i.armed = false
	return was
}

// compare hears what an audit that began at at found to be the last record of the subject: 0 for none. sure says
// that the answer is as new as the leader's was then.
func (i *Inbox) compare(last uint64, at time.Time, sure bool) comparisonResult {
	i.mu.Lock()
	if i.closed || i.lagging {
		defer i.mu.Unlock()
		if i.closed {
			return upToDate
		}
		return catchingUp
	}
	if last <= i.end {
		if sure {
			i.kept, i.keptAt = i.tail, at
		}
		i.mu.Unlock()
		return upToDate
	}
	i.mu.Unlock()
	i.noteStored(last)
	return missedRecords
}

// comparisonResult is what an audit finds out about an inbox.
type comparisonResult uint8

const (
	upToDate      comparisonResult = iota
	missedRecords                  // it reads the log now
	catchingUp                     // it does already, and the audit says nothing of it
)
