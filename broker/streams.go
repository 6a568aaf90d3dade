package broker

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	formatVersion = "1" // of subjects and records; in the metadata of each stream
	metaFormat    = "agora.format"
	metaShards    = "agora.shards"
)

const (
	streamAnswer       = time.Second
	streamPause        = 100 * time.Millisecond
	sequencesPerSecond = 1 << 12
)

// epochStart is the second from which the first sequence of a stream made again counts.
var epochStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// streamKeeper makes the streams of the log, and knows how they were found.
type streamKeeper struct {
	conn  *conn
	cfg   *Config
	clock *jslog.Clock
	ask   func(context.Context) // asks a server for the time, where none has told it yet
	anew  func(stream string)   // told that a stream was made again; must not block

	mu   sync.Mutex // guards the field below
	seen map[string]streamSeen
}

func (k *streamKeeper) init(c *conn, clock *jslog.Clock, ask func(context.Context), anew func(stream string)) {
	k.conn, k.cfg, k.clock, k.ask, k.anew = c, c.cfg, clock, ask, anew
	k.seen = make(map[string]streamSeen)
}

// names returns the names of the streams that hold the log, and last that of the book.
func (k *streamKeeper) names() []string {
	var names []string
	for _, s := range jslog.Shards(k.cfg.Shards) {
		names = append(names, s.Stream())
	}
	return append(names, jslog.StreamName(jslog.BookKind, ""))
}

// ensureAll makes the streams that are missing and checks the others, until all is well,
// something is wrong permanently, or ctx is over.
func (k *streamKeeper) ensureAll(ctx context.Context) error {
	for _, s := range jslog.Shards(k.cfg.Shards) {
		if err := k.ensure(ctx, s.Kind, s.Shard); err != nil {
			return err
		}
	}
	return k.ensure(ctx, jslog.BookKind, "")
}

// ensure asks again and again with short time-outs: before a cluster has
// its leader, a request gets no answer at all.
func (k *streamKeeper) ensure(ctx context.Context, kind, shard string) error {
	var last error
	var reminder pause.Reminder
	for {
		err := k.try(ctx, kind, shard)
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[*setupError](err); ok {
			return err
		}
		if ctx.Err() == nil {
			last = err
		}
		if reminder.Due() {
			k.cfg.Log.Warn("still waiting for JetStream", "at", hostsOf(k.cfg.URL), "stream", jslog.StreamName(kind, shard), "err", last)
		}
		if !pause.For(ctx, streamPause) {
			return k.notReady(jslog.StreamName(kind, shard), last)
		}
	}
}

// notReady says what to look at when a stream did not come to be in time.
func (k *streamKeeper) notReady(stream string, err error) error {
	at := hostsOf(k.cfg.URL)
	if denied := k.conn.denied.Load(); denied != nil {
		return &setupError{what: fmt.Sprintf("the NATS user of this edge may not do what it must: allow it to publish and subscribe $JS.API.>, $JS.EVENT.ADVISORY.>, _INBOX.> and agora.> (%v)", *denied), err: err}
	}
	if errors.Is(err, nats.ErrNoResponders) || errors.Is(err, jetstream.ErrJetStreamNotEnabled) {
		return &setupError{what: fmt.Sprintf("JetStream is not enabled at %s, or has no leader yet: add a jetstream block to the servers' configuration, and start most of them", at), err: err}
	}
	return fmt.Errorf("JetStream at %s does not come to answer for stream %s: see that most servers of the cluster run: %w", at, stream, cmp.Or(err, context.DeadlineExceeded))
}

// setupError is a mistake that no waiting mends.
type setupError struct {
	what string
	err  error
}

func (e *setupError) Error() string { return e.what }

func (e *setupError) Unwrap() error { return e.err }

// find returns what the stream is like; one that is missing is made.
func (k *streamKeeper) find(ctx context.Context, kind, shard string) (*jetstream.StreamInfo, error) {
	name := jslog.StreamName(kind, shard)
	life, sent := k.conn.Life(), time.Now()
	s, err := k.conn.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if !k.clock.IsKnown() {
			k.ask(ctx)
		}
		sent = time.Now()
		if s, err = k.conn.js.CreateStream(ctx, k.config(kind, shard)); err == nil {
			k.cfg.Log.Info("stream made", "stream", name)
		}
	}
	if err != nil {
		return nil, k.explain(err)
	}
	info := s.CachedInfo()
	k.clock.Hear(name, jslog.Sample{Sent: sent, Got: time.Now(), Log: info.TimeStamp})
	k.note(name, streamSeen{last: info.State.LastSeq, created: info.Created, life: life})
	return info, nil
}

func (k *streamKeeper) try(ctx context.Context, kind, shard string) error {
	ctx, cancel := context.WithTimeout(ctx, streamAnswer)
	defer cancel()
	info, err := k.find(ctx, kind, shard)
	if err != nil {
		return err
	}
	want, err := k.amended(info.Config, k.config(kind, shard))
	if err != nil || want == nil {
		return err
	}
	if _, err := k.conn.js.UpdateStream(ctx, *want); err != nil {
		return k.explain(err)
	}
	k.cfg.Log.Info("stream changed to the configured limits", "stream", info.Config.Name)
	return nil
}

func (k *streamKeeper) storage() jetstream.StorageType {
	if k.cfg.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

func (k *streamKeeper) config(kind, shard string) jetstream.StreamConfig {
	if kind == jslog.BookKind {
		return k.bookConfig()
	}
	name := jslog.StreamName(kind, shard)
	tail := kind + "." + shard
	keeps := k.cfg.keeps(kind)
	return jetstream.StreamConfig{
		Name:              name,
		Description:       "Agora's log",
		Subjects:          []string{jslog.LogPrefix + "*." + tail + ".*", jslog.FencePrefix + "*." + tail + ".*.*"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew, // a full shard refuses and evicts nobody; a full subject drops its own oldest nevertheless
		MaxBytes:          keeps.ShardBytes,
		MaxAge:            k.cfg.MaxAge,
		MaxMsgsPerSubject: k.cfg.MaxRecords,
		Storage:           k.storage(),
		Replicas:          keeps.Replicas,
		Duplicates:        k.cfg.Duplicates,
		AllowDirect:       true,
		FirstSeq:          k.firstSequence(name),
		RePublish:         &jetstream.RePublish{Source: jslog.LogPrefix + ">", Destination: jslog.LivePrefix + ">"},
		Metadata:          map[string]string{metaFormat: formatVersion, metaShards: strconv.Itoa(k.cfg.Shards)},
	}
}

// firstSequence returns where a stream made now begins: above all that one of its name has
// handed out before, so that a position from then is never one of now. 4,096 a second since 2025
// leaves room, with the bits for the part, below 2^53 until the year 2297.
func (k *streamKeeper) firstSequence(name string) uint64 {
	first := uint64(1)
	if age := k.clock.Now().Sub(epochStart); age > 0 {
		first = max(1, uint64(age/(time.Second/sequencesPerSecond)))
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	if last := k.seen[name].last; last >= first {
		first = last + sequencesPerSecond
	}
	return first
}

// streamSeen is what a Broker knows of a stream from looking at it.
type streamSeen struct {
	last    uint64    // highest sequence
	created time.Time // when it was made; zero where that was not asked
	life    uint64    // of the connection, when it was asked
}

// note notes how a stream was found. A stream that was made again has lost what the old one held: note has its
// inboxes read the log first.
func (k *streamKeeper) note(stream string, now streamSeen) {
	k.mu.Lock()
	defer k.mu.Unlock()
	was := k.seen[stream]
	if now.last < was.last || !now.created.IsZero() && !was.created.IsZero() && !now.created.Equal(was.created) {
		k.mu.Unlock()
		k.anew(stream)
		k.mu.Lock()
		was = k.seen[stream]
	}
	if now.created.IsZero() {
		now.created, now.life = was.created, was.life
	}
	now.last = max(was.last, now.last)
	k.seen[stream] = now
}

// confirmed reports whether a stream was found as it was known to be, or its inboxes were told, since the connection
// was lost last.
func (k *streamKeeper) confirmed(stream string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.seen[stream].life == k.conn.Life()
}

// Cluster returns a name of the cluster that is kept in the log: it is the same at every edge, and no other cluster has
// it. It does not block.
func (b *Broker) Cluster() string {
	b.streams.mu.Lock()
	made := b.streams.seen[jslog.StreamName(jslog.BookKind, "")].created
	b.streams.mu.Unlock()
	sum := sha256.Sum256([]byte("cluster " + strconv.FormatInt(made.UnixNano(), 10)))
	return hex.EncodeToString(sum[:8])
}

// amended returns the configuration that a stream has to be changed to; nil when it is right.
func (k *streamKeeper) amended(have, want jetstream.StreamConfig) (*jetstream.StreamConfig, error) {
	if v := have.Metadata[metaFormat]; v != formatVersion {
		return nil, &setupError{what: fmt.Sprintf("stream %s has format %q and this edge speaks %q: run the release that made it, or delete the stream with all it holds", have.Name, v, formatVersion)}
	}
	if v := have.Metadata[metaShards]; v != want.Metadata[metaShards] {
		return nil, &setupError{what: fmt.Sprintf("stream %s was made for %s shards and %s are configured: set nats.shards back, or delete the streams with all they hold", have.Name, v, want.Metadata[metaShards])}
	}
	if have.Storage != want.Storage {
		return nil, &setupError{what: fmt.Sprintf("stream %s is kept in %s storage and %s is configured: set nats.storage back, or delete the stream with all it holds", have.Name, storageName(have.Storage), storageName(want.Storage))}
	}
	changed := have
	changed.Subjects, changed.Discard, changed.RePublish, changed.AllowDirect = want.Subjects, want.Discard, want.RePublish, want.AllowDirect
	changed.MaxAge, changed.MaxMsgsPerSubject, changed.MaxBytes = want.MaxAge, want.MaxMsgsPerSubject, want.MaxBytes
	changed.MaxMsgs, changed.MaxMsgSize = -1, -1
	changed.Replicas, changed.Duplicates = want.Replicas, want.Duplicates
	if reflect.DeepEqual(have, changed) {
		return nil, nil
	}
	changed.Metadata = maps.Clone(have.Metadata)
	return &changed, nil
}

func storageName(s jetstream.StorageType) string { return strings.ToLower(s.String()) }

// explain says what to do about an answer that no waiting changes.
func (k *streamKeeper) explain(err error) error {
	e, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return err
	}
	most := max(k.cfg.Replicas, k.cfg.Calls.Replicas)
	switch e.ErrorCode {
	case jslog.CodeReplicas:
		return &setupError{what: fmt.Sprintf("%d replicas need a cluster of at least %d NATS servers: add servers, or set nats.replicas to 1", most, most), err: err}
	case jslog.CodeStorage, jslog.CodeMemory, jslog.CodeResources, jslog.CodeStreamBytes:
		return &setupError{what: fmt.Sprintf("NATS can't hold %d streams of %d bytes, %d of %d bytes and one of %d bytes: raise the JetStream limits of servers and account, or lower mailbox.shard-bytes and calls.shard-bytes (%s)",
			2*k.cfg.Shards, k.cfg.ShardBytes, k.cfg.Shards, k.cfg.Calls.ShardBytes, k.cfg.BookBytes, e.Description), err: err}
	case jslog.CodeNoAccount:
		return &setupError{what: "JetStream is not enabled for the NATS account of this edge: enable it, or give credentials of another account", err: err}
	case jslog.CodeNoJetStream:
		return &setupError{what: fmt.Sprintf("JetStream is not enabled at %s: add a jetstream block to the servers' configuration", hostsOf(k.cfg.URL)), err: err}
	case jslog.CodeNoPeers: // servers that have just started find each other soon
		return fmt.Errorf("no %d NATS servers with room for %d bytes: add servers, or lower nats.replicas, mailbox.shard-bytes or calls.shard-bytes: %w", most, k.cfg.ShardBytes, err)
	}
	return err
}

func (k *streamKeeper) bookConfig() jetstream.StreamConfig {
	name := jslog.StreamName(jslog.BookKind, "")
	return jetstream.StreamConfig{
		Name:              name,
		Description:       "Agora's records that are decided once",
		Subjects:          []string{jslog.BookPrefix + ">"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew,
		MaxBytes:          k.cfg.BookBytes,
		MaxAge:            k.cfg.BookKeep,
		MaxMsgsPerSubject: -1, // the first stands: a leader that is new may take another one, which must not push it out
		Storage:           k.storage(),
		Replicas:          k.cfg.Replicas,
		Duplicates:        min(k.cfg.Duplicates, k.cfg.BookKeep),
		AllowDirect:       true,
		FirstSeq:          k.firstSequence(name),
		Metadata:          map[string]string{metaFormat: formatVersion},
	}
}
