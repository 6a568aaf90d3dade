package broker

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strconv"
	"strings"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

const (
	formatVersion = "1" // of subjects and records; in the metadata of each stream
	metaFormat    = "agora.format"
	metaShards    = "agora.shards"
)

// Codes of the server's that mean something to us.
const (
	codeNoPeers        = 10005
	codeNoAccount      = 10039 // JetStream is not enabled for the account
	codeResources      = 10023
	codeMemory         = 10028
	codeStorage        = 10047
	codeOtherConfig    = 10058
	codeWrongLast      = 10071 // the fence is not where the record expects it
	codeReplicas       = 10074
	codeNoJetStream    = 10076
	codeStoreFailed    = 10077 // a limit of the stream: it is full
	codeStreamBytes    = 10122 // more than the account allows for one stream
	codeDuplicateOnWay = 10158 // a record with the same id is being stored
	codeWrongLastOnWay = 10164 // the fence is being moved, or the lane's last record is still counted as on its way
	streamAnswer       = time.Second
	streamPause        = 100 * time.Millisecond
	sequencesPerSecond = 1 << 12
)

// epochStart is the second from which the first sequence of a stream made anew counts.
var epochStart = time.Date(2025, 1, 1, 0, 0, 0, 0, time.UTC)

// Streams returns the names of the streams that hold the log, and last that of the book.
func (b *Broker) Streams() []string { return append(b.mailStreams(), streamName(bookKind, "")) }

// mailStreams returns the names of the streams that hold messages.
func (b *Broker) mailStreams() []string {
	names := make([]string, 0, len(kinds)*b.cfg.Shards+1)
	for _, kind := range kinds {
		for shard := range b.cfg.Shards {
			names = append(names, streamName(kind, strconv.Itoa(shard)))
		}
	}
	return names
}

// ensureStreams makes the streams that are missing and checks the others, until all is well,
// something is wrong for good, or ctx is over.
func (b *Broker) ensureStreams(ctx context.Context) error {
	for _, kind := range kinds {
		for shard := range b.cfg.Shards {
			if err := b.ensureStream(ctx, kind, strconv.Itoa(shard)); err != nil {
				return err
			}
		}
	}
	return b.ensureStream(ctx, bookKind, "")
}

// ensureStream asks again and again with short time-outs: before a cluster has
// its leader, a request gets no answer at all.
func (b *Broker) ensureStream(ctx context.Context, kind, shard string) error {
	var last error
	for {
		err := b.tryStream(ctx, kind, shard)
		if err == nil {
			return nil
		}
		if _, ok := errors.AsType[*setupError](err); ok {
			return err
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(streamPause):
		case <-ctx.Done():
			return b.notReady(streamName(kind, shard), last)
		}
	}
}

// notReady says what to look at when a stream did not come to be in time.
func (b *Broker) notReady(stream string, err error) error {
	at := hostsOf(b.cfg.URL)
	if denied := b.denied.Load(); denied != nil {
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

// findStream returns what the stream is like; one that is missing is made.
func (b *Broker) findStream(ctx context.Context, kind, shard string) (*jetstream.StreamInfo, error) {
	name := streamName(kind, shard)
	life, sent := b.Life(), time.Now()
	s, err := b.js.Stream(ctx, name)
	if errors.Is(err, jetstream.ErrStreamNotFound) {
		if b.clock.known.Load() == nil {
			b.askTime(ctx)
		}
		sent = time.Now()
		if s, err = b.js.CreateStream(ctx, b.streamConfig(kind, shard)); err == nil {
			b.cfg.Log.Info("stream made", "stream", name)
		}
	}
	if err != nil {
		return nil, b.explain(err)
	}
	info := s.CachedInfo()
	b.clock.hear(name, sample{sent: sent, got: time.Now(), log: info.TimeStamp})
	b.noteStream(name, streamSeen{last: info.State.LastSeq, created: info.Created, life: life})
	return info, nil
}

func (b *Broker) tryStream(ctx context.Context, kind, shard string) error {
	ctx, cancel := context.WithTimeout(ctx, streamAnswer)
	defer cancel()
	info, err := b.findStream(ctx, kind, shard)
	if err != nil {
		return err
	}
	want, err := b.amended(info.Config, b.streamConfig(kind, shard))
	if err != nil || want == nil {
		return err
	}
	if _, err := b.js.UpdateStream(ctx, *want); err != nil {
		return b.explain(err)
	}
	b.cfg.Log.Info("stream changed to the configured limits", "stream", info.Config.Name)
	return nil
}

func (b *Broker) storage() jetstream.StorageType {
	if b.cfg.Memory {
		return jetstream.MemoryStorage
	}
	return jetstream.FileStorage
}

func (b *Broker) streamConfig(kind, shard string) jetstream.StreamConfig {
	if kind == bookKind {
		return b.bookConfig()
	}
	name := streamName(kind, shard)
	tail := kind + "." + shard
	keeps := b.cfg.keeps(kind)
	return jetstream.StreamConfig{
		Name:              name,
		Description:       "Agora's log",
		Subjects:          []string{logPrefix + "*." + tail + ".*", fencePrefix + "*." + tail + ".*.*"},
		Retention:         jetstream.LimitsPolicy,
		Discard:           jetstream.DiscardNew, // a full shard refuses and evicts nobody; a full subject drops its own oldest all the same
		MaxBytes:          keeps.ShardBytes,
		MaxAge:            b.cfg.MaxAge,
		MaxMsgsPerSubject: b.cfg.MaxRecords,
		Storage:           b.storage(),
		Replicas:          keeps.Replicas,
		Duplicates:        b.cfg.Duplicates,
		AllowDirect:       true,
		FirstSeq:          b.firstSequence(name),
		RePublish:         &jetstream.RePublish{Source: logPrefix + ">", Destination: livePrefix + ">"},
		Metadata:          map[string]string{metaFormat: formatVersion, metaShards: strconv.Itoa(b.cfg.Shards)},
	}
}

// firstSequence returns where a stream made now begins: above all that one of its name has
// handed out before, so that a position from then is never one of now. 4,096 a second since 2025
// leaves room, with the bits for the part, below 2^53 until the year 2297.
func (b *Broker) firstSequence(name string) uint64 {
	first := uint64(1)
	if age := b.Now().Sub(epochStart); age > 0 {
		first = max(1, uint64(age/(time.Second/sequencesPerSecond)))
	}
	b.streamsMu.Lock()
	defer b.streamsMu.Unlock()
	if last := b.streams[name].last; last >= first {
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

// noteStream notes how a stream was found. One that was made anew has lost what the old one held: first its inboxes are told to
// look where they stand.
func (b *Broker) noteStream(stream string, now streamSeen) {
	b.streamsMu.Lock()
	defer b.streamsMu.Unlock()
	was := b.streams[stream]
	if now.last < was.last || !now.created.IsZero() && !was.created.IsZero() && !now.created.Equal(was.created) {
		b.streamsMu.Unlock()
		b.dispatch.markRestarted(stream)
		b.streamsMu.Lock()
		was = b.streams[stream]
	}
	if now.created.IsZero() {
		now.created, now.life = was.created, was.life
	}
	now.last = max(was.last, now.last)
	b.streams[stream] = now
}

// streamConfirmed reports whether a stream was found as it was known to be, or its inboxes were told, since the connection was lost last.
func (b *Broker) streamConfirmed(stream string) bool {
	b.streamsMu.Lock()
	defer b.streamsMu.Unlock()
	return b.streams[stream].life == b.Life()
}

// amended returns the configuration that a stream has to be changed to; nil when it is right.
func (b *Broker) amended(have, want jetstream.StreamConfig) (*jetstream.StreamConfig, error) {
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
func (b *Broker) explain(err error) error {
	e, ok := errors.AsType[*jetstream.APIError](err)
	if !ok {
		return err
	}
	most := max(b.cfg.Replicas, b.cfg.Calls.Replicas)
	switch e.ErrorCode {
	case codeReplicas:
		return &setupError{what: fmt.Sprintf("%d replicas need a cluster of at least %d NATS servers: add servers, or set nats.replicas to 1", most, most), err: err}
	case codeStorage, codeMemory, codeResources, codeStreamBytes:
		return &setupError{what: fmt.Sprintf("NATS can't hold %d streams of %d bytes, %d of %d bytes and one of %d bytes: raise the JetStream limits of servers and account, or lower mailbox.shard-bytes and calls.shard-bytes (%s)",
			2*b.cfg.Shards, b.cfg.ShardBytes, b.cfg.Shards, b.cfg.Calls.ShardBytes, b.cfg.BookBytes, e.Description), err: err}
	case codeNoAccount:
		return &setupError{what: "JetStream is not enabled for the NATS account of this edge: enable it, or give credentials of another account", err: err}
	case codeNoJetStream:
		return &setupError{what: fmt.Sprintf("JetStream is not enabled at %s: add a jetstream block to the servers' configuration", hostsOf(b.cfg.URL)), err: err}
	case codeNoPeers: // servers that have just started find each other soon
		return fmt.Errorf("no %d NATS servers with room for %d bytes: add servers, or lower nats.replicas, mailbox.shard-bytes or calls.shard-bytes: %w", most, b.cfg.ShardBytes, err)
	}
	return err
}
