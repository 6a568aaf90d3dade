package broker

import (
	"context"
	"errors"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/internal/pause"
)

// watcher looks after one stream of the log for the inboxes here. Every [Config].Probe it asks the stream's leader how
// things stand: that gives the time, and shows a new leader, or a stream made again, also where no word of it came. It
// finds what no live record tells, a record whose handing on was lost with none after it: it compares the inboxes with
// the log at once, and for a while, when there is a new leader or a new connection (the old leader may have died
// between storing and handing on; what is stored while the connection was away is handed on without it), a while after
// a subject was subscribed (other servers may hear of that late), and now and then always.
type watcher struct {
	b      *Broker
	kind   string
	shard  string
	stream string
	some   chan struct{} // holds one token when there is something to do
	todo   atomic.Uint32 // what it was asked for, as a set of bits
	led    atomic.Bool   // the leader answered last time
	bytes  atomic.Uint64 // that the stream kept then
	use    streamShares  // what is stored in the stream, by whom
	stores takes         // whether it takes records

	// The loop's own.
	asked      bool      // the leader was, once
	leader     string    // that answered last time; empty when none did
	probed     time.Time // when it was asked last
	audited    time.Time // when it was begun to compare all inboxes, the last time
	audit      auditor
	doubtUntil time.Time // until then every look compares
	owed       uint32    // what could not be done yet
	warned     time.Time
	recounted  time.Time // when it was last looked who has stored more than its share
	forgot     time.Time // when what is too old was last forgotten of that
}

// What a watcher may be asked for.
const (
	checkStream  = 1 << iota // that the stream is there, and as configured
	checkLeader              // that the stream has one, soon
	checkInboxes             // their positions
	checkShares              // who has stored more than its share
)

const (
	leaderElected = "$JS.EVENT.ADVISORY.STREAM.LEADER_ELECTED."
	lookEvery     = 500 * time.Millisecond
	probeEvery    = time.Second
	probeTime     = 500 * time.Millisecond  // a stream without a leader does not answer, and must not hold up the word of a new one
	doubtFor      = 1500 * time.Millisecond // a leader may be announced before it serves reads, and a connection be there before other servers know its subjects
	passShare     = 3                       // which part of the time between two audits of all inboxes one of them takes at most
	watchSettle   = 20 * time.Millisecond   // a new leader tells several times, and is asked once
	warnEvery     = 15 * time.Second
)

// watchers are those of all streams, by name.
type watchers map[string]*watcher

func (b *Broker) newWatchers() watchers {
	all := make(watchers)
	add := func(kind, shard string) {
		w := &watcher{b: b, kind: kind, shard: shard, stream: jslog.StreamName(kind, shard), some: make(chan struct{}, 1)}
		w.audit = auditor{b: b, stream: w.stream}
		w.use.limit, w.use.shares = b.cfg.keeps(kind).ShardBytes, b.cfg.Shares
		w.led.Store(true) // it has just answered, or there would be no watcher
		all[w.stream] = w
	}
	for _, s := range jslog.Shards(b.cfg.Shards) {
		add(s.Kind, s.Shard)
	}
	add(jslog.BookKind, "")
	return all
}

// ask has every stream looked at now.
func (ws watchers) ask(what uint32) {
	for _, w := range ws {
		w.ask(what)
	}
}

func (w *watcher) ask(what uint32) {
	w.todo.Or(what)
	signal(w.some)
}

// nobody has a stream looked at soon for which nobody takes records, or answers: it has no leader now, or
// somebody has deleted it.
func (ws watchers) nobody(stream string) {
	if w := ws[stream]; w != nil {
		w.ask(checkLeader)
	}
}

// watch starts the watchers; they run until the Broker closes.
func (b *Broker) watch() (err error) {
	b.advisories, err = b.nc.Subscribe(leaderElected+"*", func(m *nats.Msg) {
		if w := b.watchers[strings.TrimPrefix(m.Subject, leaderElected)]; w != nil {
			w.ask(checkInboxes)
		}
	})
	for _, w := range b.watchers {
		b.wg.Go(w.run)
	}
	return err
}

func (w *watcher) run() {
	every := min(lookEvery, w.b.cfg.Audit)
	w.audited = time.Now()
	timer := time.NewTimer(every)
	defer timer.Stop()
	for {
		select {
		case <-w.b.ctx.Done():
			return
		case <-w.some:
			if !pause.For(w.b.ctx, watchSettle) {
				return
			}
		case <-timer.C:
		}
		w.warn(w.look(time.Now()))
		timer.Reset(every)
	}
}

// look does what is due.
func (w *watcher) look(now time.Time) error {
	w.take(w.todo.Swap(0), now)
	heard := w.b.dispatch.listening(w.stream)
	if since := now.Sub(w.probed); (heard || w.owed&checkLeader != 0 || w.use.grows()) && since >= w.b.cfg.Probe || since >= w.b.cfg.Audit {
		w.probe(now)
	}
	err := w.compare(now, heard)
	if since := now.Sub(w.recounted); w.owed&checkShares != 0 && since >= w.b.cfg.Probe/8 || since >= w.b.cfg.Probe {
		w.owed &^= checkShares
		err = errors.Join(err, w.checkShares(now))
	}
	if w.owed&checkStream == 0 {
		return err
	}
	ctx, cancel := context.WithTimeout(w.b.ctx, w.b.cfg.read)
	defer cancel()
	if err := w.b.streams.ensure(ctx, w.kind, w.shard); err != nil {
		return err
	}
	w.owed &^= checkStream
	return err
}

// take notes what is asked for.
func (w *watcher) take(what uint32, now time.Time) {
	w.owed |= what
	if what&checkInboxes != 0 {
		w.doubtUntil = now.Add(doubtFor)
		w.stores.forget() // what an earlier leader refused says nothing of this one
		if w.kind == jslog.BookKind {
			w.b.book.noteNewLeader()
		}
		w.b.retrier.hurry() // what the old leader had in hand may be gone
	}
}

// probe asks the leader how the stream stands. While none answers, that shows by the one that does at last.
func (w *watcher) probe(now time.Time) {
	ctx, cancel := context.WithTimeout(w.b.ctx, probeTime)
	defer cancel()
	w.probed = now
	w.owed &^= checkLeader
	life, sent := w.b.Life(), w.use.sent.Load()
	s, err := w.b.log.State(ctx, w.stream, "")
	was, asked := w.leader, w.asked
	w.leader, w.asked = s.Leader, true
	if e, ok := errors.AsType[*jetstream.APIError](err); ok && e.ErrorCode == jetstream.JSErrCodeStreamNotFound {
		w.take(checkStream, now)
	}
	w.led.Store(err == nil)
	if err != nil {
		return
	}
	w.bytes.Store(s.Bytes)
	w.use.see(int64(s.Bytes), sent)
	w.b.streams.note(w.stream, streamSeen{last: s.Last, created: s.Created, life: life})
	if asked && was != w.leader {
		w.take(checkInboxes, time.Now())
	}
}

// compare audits the inboxes that are due.
func (w *watcher) compare(now time.Time, heard bool) error {
	grown := w.b.dispatch.matured(w.stream, w.b.cfg.mature)
	if !heard || !guard.Audits {
		w.owed &^= checkInboxes
		return nil
	}
	_, err := w.audit.compare(w.b.ctx, grown, 0)
	if err == nil {
		err = w.compareOld(now)
	}
	if err != nil {
		w.owed |= checkInboxes
	}
	return err
}

// compareOld audits those whose subjects are not young: all at once where something may have happened, else some of
// them at each look.
func (w *watcher) compareOld(now time.Time) error {
	if w.owed&checkInboxes != 0 || now.Before(w.doubtUntil) {
		if err := w.audit.all(w.b.ctx); err != nil {
			return err
		}
		w.audited = now
		w.owed &^= checkInboxes
		return nil
	}
	if len(w.audit.pass.left) == 0 && now.Sub(w.audited) >= w.b.cfg.Audit {
		w.audited = now
		if err := w.audit.begin(w.b.ctx, int(max(1, w.b.cfg.Audit/passShare/lookEvery))); err != nil {
			return err
		}
	}
	if len(w.audit.pass.left) == 0 {
		return nil
	}
	return w.audit.next(w.b.ctx)
}

// warn logs what could not be done, now and then.
func (w *watcher) warn(err error) {
	if now := time.Now(); err != nil && w.b.ctx.Err() == nil && now.Sub(w.warned) >= warnEvery {
		w.warned = now
		w.b.cfg.Log.Warn("watching the log", "stream", w.stream, "err", err)
	}
}
