package broker

import (
	"runtime"
	"strconv"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/guard"
)

// topics are the live subjects that a Broker listens to. Their messages come through a few channels,
// each read by one goroutine that never blocks.
type topics struct {
	chans []chan *nats.Msg

	mu     sync.RWMutex // guards the fields below
	m      map[string]*topic
	crowds map[string]*crowd // those of a stream, by its name
}

// crowd is what is listened to in one stream.
type crowd struct {
	subjects int
	young    []*topic // subscribed a moment ago, the oldest first
	compared comparison
}

// topic is one live subject.
type topic struct {
	at    place
	sub   *nats.Subscription // nil until it could be subscribed
	since int64              // ticks when it was

	mu      sync.Mutex // guards the field below; taken under topics.mu, never before it
	inboxes []*Inbox
}

// liveQueue is how many live records wait in one channel. A full one drops, and those who miss
// something read the log: the bound is memory against how long a goroutine may be held up.
const liveQueue = 4096

func (t *topics) init(*Broker) {
	t.m, t.crowds = make(map[string]*topic), make(map[string]*crowd)
	t.chans = make([]chan *nats.Msg, max(1, runtime.GOMAXPROCS(0)))
	for k := range t.chans {
		t.chans[k] = make(chan *nats.Msg, liveQueue)
	}
}

func (t *topics) start(b *Broker) {
	for _, c := range t.chans {
		b.wg.Go(func() { t.dispatch(b, c) })
	}
}

// dispatch hands the records of one channel to their inboxes.
func (t *topics) dispatch(b *Broker, c chan *nats.Msg) {
	for {
		select {
		case m := <-c:
			t.hand(b, m)
		case <-b.ctx.Done():
			return
		}
	}
}

func (t *topics) hand(b *Broker, m *nats.Msg) {
	t.mu.RLock()
	top := t.m[m.Subject]
	t.mu.RUnlock()
	if top == nil {
		return
	}
	if v := m.Header[nudgeHeader]; len(v) > 0 {
		if seq, err := strconv.ParseUint(v[0], 10, 64); err == nil {
			top.each(func(i *Inbox) { i.heard(seq) })
		}
		return
	}
	seq, last := number(m.Header, "Nats-Sequence"), number(m.Header, "Nats-Last-Sequence")
	if seq == 0 {
		return // not the server's
	}
	top.each(func(i *Inbox) { i.push(m, seq, last) })
}

// each calls f for every inbox of the subject. f must not block.
func (t *topic) each(f func(*Inbox)) {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, i := range t.inboxes {
		f(i)
	}
}

// join adds an inbox to its subject, and subscribes when it is the first.
func (t *topics) join(b *Broker, i *Inbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	top := t.m[i.at.live]
	if top == nil {
		top = &topic{at: i.at, since: agora.Ticks()}
		t.m[i.at.live] = top
		t.crowd(i.at.stream).add(top)
		c := t.chans[shardOf("", i.at.live, len(t.chans))]
		sub, err := b.nc.ChanSubscribe(i.at.live, c)
		if err != nil { // only on a connection that is closed: the log can't be read either
			b.cfg.Log.Warn("listening", "err", err)
		}
		top.sub = sub
	}
	top.mu.Lock()
	top.inboxes = append(top.inboxes, i)
	top.mu.Unlock()
}

// leave takes an inbox off its subject, and unsubscribes when it was the last.
func (t *topics) leave(i *Inbox) {
	t.mu.Lock()
	defer t.mu.Unlock()
	top := t.m[i.at.live]
	if top == nil {
		return
	}
	top.mu.Lock()
	defer top.mu.Unlock()
	for k := range top.inboxes {
		if top.inboxes[k] == i {
			top.inboxes = append(top.inboxes[:k], top.inboxes[k+1:]...)
			break
		}
	}
	if len(top.inboxes) > 0 {
		return
	}
	delete(t.m, i.at.live)
	t.crowd(i.at.stream).subjects--
	if top.sub != nil {
		_ = top.sub.Unsubscribe() // fails on a closed connection, which has none
	}
}

// missed marks the inboxes of a subject behind: a record of theirs was dropped on its way.
func (t *topics) missed(b *Broker, subject string) {
	t.mu.RLock()
	top := t.m[subject]
	t.mu.RUnlock()
	if top != nil {
		b.count.dropped.Add(1)
		top.each((*Inbox).fallBehind)
	}
}

// close ends every inbox.
func (t *topics) close() {
	t.mu.RLock()
	var open []*Inbox
	for _, top := range t.m {
		top.each(func(i *Inbox) { open = append(open, i) })
	}
	t.mu.RUnlock()
	for _, i := range open {
		i.Close()
	}
}

// restarted marks the inboxes of a stream behind: it was made anew.
func (t *topics) restarted(stream string) {
	t.mu.Lock()
	c := t.crowd(stream)
	c.compared = comparison{anew: c.compared.anew + 1}
	t.mu.Unlock()
	for _, top := range t.of(stream) {
		top.each((*Inbox).fallBehind)
	}
}

// push queues a live record, if it follows and fits.
func (i *Inbox) push(m *nats.Msg, seq, last uint64) {
	i.mu.Lock()
	q := live{seq: seq, last: last, size: m.Size(), m: m}
	woken := false
	switch {
	case i.closed || seq <= i.end:
	case i.behind && i.staging:
		i.stage(q)
	case i.behind:
		i.b.count.dropped.Add(1)
	case !i.follows(last) || !i.fits(q.size):
		i.b.count.dropped.Add(1)
		if !guard.Gaps {
			i.end = seq
			break
		}
		i.behind = true
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
	return last == i.end && (last != 0 || i.b.confirmed(i.at.stream))
}

func (i *Inbox) fits(size int) bool { return i.bytes+size <= int(i.b.inboxRoom.Load()) }

// enqueue adds a record that follows the last one. The lock is held.
func (i *Inbox) enqueue(q live) {
	i.queue = append(i.queue, q)
	i.bytes += q.size
	i.endSize = q.size + headroom
	i.end, i.tail = q.seq, q.seq<<agora.SeqShift|uint64(record.Count(q.m.Data)-1)
}

// stage keeps a live record while the end of the log is being read. The lock is held.
func (i *Inbox) stage(q live) {
	if n := len(i.staged); n > 0 && (q.seq <= i.staged[n-1].seq) {
		return
	} else if n > 0 && (q.last != i.staged[n-1].seq || !i.fits(q.size)) {
		i.unstage()
	}
	if !i.fits(q.size) {
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

// heard marks the inbox behind when a record is stored that it has not got.
func (i *Inbox) heard(seq uint64) {
	i.mu.Lock()
	woken := false
	if seq > i.end && !i.closed {
		i.highest = max(i.highest, seq)
		i.behind = true
		woken = i.disarm()
	}
	i.mu.Unlock()
	if woken {
		i.call()
	}
}

// fallBehind has the log read.
func (i *Inbox) fallBehind() {
	i.mu.Lock()
	i.behind = true
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

// checked hears what an audit that began at at found to be the last record of the subject: 0 for none. sure says
// that the answer is as new as the leader's was then.
func (i *Inbox) checked(last uint64, at time.Time, sure bool) finding {
	i.mu.Lock()
	if i.closed || i.behind {
		defer i.mu.Unlock()
		if i.closed {
			return hasAll
		}
		return readsTheLog
	}
	if last <= i.end {
		if sure {
			i.kept, i.keptAt = i.tail, at
		}
		i.mu.Unlock()
		return hasAll
	}
	i.mu.Unlock()
	i.heard(last)
	return missedSome
}

// finding is what an audit finds out about an inbox.
type finding uint8

const (
	hasAll      finding = iota
	missedSome          // it reads the log now
	readsTheLog         // it does already, and the audit says nothing of it
)
