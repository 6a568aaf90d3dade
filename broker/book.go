package broker

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/internal/pause"
)

// Book keeps records that are decided once: something is opened under a name, and later decided, each by the first who
// does. It is a stream of its own, in which what stands is the first record of its subject, in the one order that the
// log has. So it does not matter what a server knew when it took another one. Its methods may be called at the same
// time.
type Book struct {
	b     *Broker
	young atomic.Int64 // ticks until which a leader may know less than stands: it is new
}

// Entry is a record of the book: it opens something, or decides it.
type Entry struct {
	Tenant  string
	Name    string
	Decides uint64    // Seq of what it decides; 0 where it opens
	Seq     uint64    // where it stands in the book; above that of every older record
	Time    time.Time // when it was stored, by the servers' clock: the same for every reader
	Body    []byte    // as it was given; shared, and not to be changed
	Label   string    // what was said of it beside the body: readers that know of no labels do without; empty for none
	mark    [markSize]byte
}

// ErrNotOpen means that nothing of that name is open, or not what is to be decided.
var ErrNotOpen = errors.New("nothing of that name is open")

const (
	bookVersion = 1
	markSize    = 16
	maxBookName = 2 << 10 // bytes of a tenant and of a name
	maxLabel    = 512     // bytes of a label
)

// Book returns the cluster's book.
func (b *Broker) Book() *Book { return &b.book }

// Keep returns how long a record stands before the log drops it.
func (k *Book) Keep() time.Duration { return k.b.cfg.BookKeep }

// Bytes returns how much the book can hold: beyond it, nothing can be opened or decided.
func (k *Book) Bytes() int64 { return k.b.cfg.BookBytes }

// Open stores a record that opens something, unless one of that tenant and name stands, and returns what stands; mine
// says that this call has stored it. It takes a few round trips, and tries again until ctx is over. Errors: UNAVAILABLE
// when the log could not be reached by then, or has been away for longer than an election, or is full: the record may
// stand nevertheless, and opening it again tells; MESSAGE_TOO_LARGE; INVALID_REQUEST for an impossible name. Of e it
// takes Tenant, Name, Body and Label, which has at most 512 bytes.
func (k *Book) Open(ctx context.Context, e Entry) (stands Entry, mine bool, err error) {
	if e.Tenant == "" || e.Name == "" || len(e.Tenant) > maxBookName || len(e.Name) > maxBookName || len(e.Label) > maxLabel {
		return Entry{}, false, agora.Errorf(agora.InvalidRequest, "the name of a record is empty, or too long")
	}
	return k.put(ctx, Entry{Tenant: e.Tenant, Name: e.Name, Body: e.Body, Label: e.Label})
}

// Decide stores a record that decides what opened stands for, unless one that does stands, and returns what stands as
// Open does. It fails with ErrNotOpen when that is not in the book any more.
func (k *Book) Decide(ctx context.Context, opened Entry, body []byte) (stands Entry, mine bool, err error) {
	now, err := k.first(ctx, opened.Tenant, opened.Name, 0)
	switch {
	case errors.Is(err, jslog.ErrNone) || err == nil && now.Seq != opened.Seq:
		return Entry{}, false, ErrNotOpen
	case err != nil:
		return Entry{}, false, jslog.Unavailable(err)
	}
	return k.put(ctx, Entry{Tenant: opened.Tenant, Name: opened.Name, Decides: opened.Seq, Body: body})
}

// Get returns what is open under a name, and how that was decided; nil for what is not there. It is the word of the
// stream's leader, which is asked until ctx is over.
func (k *Book) Get(ctx context.Context, tenant, name string) (opened, decision *Entry, err error) {
	o, err := k.first(ctx, tenant, name, 0)
	if errors.Is(err, jslog.ErrNone) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, jslog.Unavailable(err)
	}
	d, err := k.first(ctx, tenant, name, o.Seq)
	if errors.Is(err, jslog.ErrNone) {
		return &o, nil, nil
	}
	if err != nil {
		return nil, nil, jslog.Unavailable(err)
	}
	return &o, &d, nil
}

// Last returns the Seq of the last record that the book has got, as the stream's leader knows it; 0 for none. Watches
// that have not got as far look at once.
func (k *Book) Last(ctx context.Context) (uint64, error) {
	m, err := k.b.log.Last(ctx, jslog.StreamName(jslog.BookKind, ""), jslog.BookPrefix+">")
	if errors.Is(err, jslog.ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, jslog.Unavailable(err)
	}
	k.hint(m.Seq)
	return m.Seq, nil
}

// put stores e unless one of its subject stands, and returns the one that does. A leader may refuse a record where none
// stands, and an acknowledgement may be lost: what counts is what is read, and whose mark that has.
func (k *Book) put(ctx context.Context, e Entry) (stands Entry, mine bool, err error) {
	rand.Read(e.mark[:])
	body := appendEntry(nil, &e)
	if limit := k.b.log.MaxRecord(); len(body) > limit {
		return Entry{}, false, jslog.TooLarge(limit)
	}
	for {
		failed := k.publish(ctx, &e, body)
		stands, err = k.read(ctx, e.Tenant, e.Name, e.Decides)
		if err == nil {
			if mine = stands.mark == e.mark; mine {
				k.hint(stands.Seq)
			}
			return stands, mine, nil
		}
		if errors.Is(err, jslog.ErrNone) && failed != nil {
			if full, ok := errors.AsType[*agora.Error](failed); ok {
				return Entry{}, false, full
			}
			err = failed
		}
		if !k.patient(ctx) {
			return Entry{}, false, jslog.Unavailable(err)
		}
	}
}

// patient waits before another try, and reports whether that makes sense.
func (k *Book) patient(ctx context.Context) bool {
	return !k.b.Lost() && pause.For(ctx, jslog.RetryPause) && k.b.ctx.Err() == nil
}

// publish sends a record once. An *agora.Error says that the log is full; after another one the record may be stored or
// not.
func (k *Book) publish(ctx context.Context, e *Entry, body []byte) error {
	m := nats.NewMsg(bookSubject(e.Tenant, e.Name, e.Decides))
	m.Header[jslog.ExpectedLast] = []string{"0"}
	if e.Label != "" {
		m.Header[jslog.LabelHeader] = []string{agora.EncodeToken(e.Label)}
	}
	m.Data = body
	a, err := k.b.log.Publish(ctx, m, k.b.cfg.Retry)
	switch {
	case err != nil:
		return err
	case a.Absent:
		k.b.watchers.nobody(jslog.StreamName(jslog.BookKind, ""))
		return jslog.ErrSilent
	case a.Refused():
		return jslog.Full()
	case a.Err != nil:
		return a.Err
	}
	return nil
}

// hint tells all edges that a record is stored. One that it does not reach finds it soon.
func (k *Book) hint(seq uint64) { _ = k.b.nc.Publish(jslog.BookHint, strconv.AppendUint(nil, seq, 10)) }

// noteNewLeader says that the stream may have a new leader, which may not have caught up with what it is bound by.
func (k *Book) noteNewLeader() { k.young.Store(agora.Ticks() + int64(k.b.cfg.lag)) }

// first is read, again and again until there is an answer, or ctx is over. It takes the word of a new leader that
// something is not there for none.
func (k *Book) first(ctx context.Context, tenant, name string, of uint64) (Entry, error) {
	for {
		e, err := k.read(ctx, tenant, name, of)
		if err == nil || errors.Is(err, jslog.ErrNone) && agora.Ticks() >= k.young.Load() {
			return e, err
		}
		if !k.patient(ctx) {
			return Entry{}, fmt.Errorf("%w: %v", jslog.ErrSilent, err) // it may be errNone, which is no answer here
		}
	}
}

// read returns the record that opens a name, or the one that decides what stands at a sequence, as the leader knows it.
func (k *Book) read(ctx context.Context, tenant, name string, of uint64) (Entry, error) {
	m, err := k.b.log.Next(ctx, jslog.StreamName(jslog.BookKind, ""), bookSubject(tenant, name, of), of+1)
	if err != nil {
		return Entry{}, err
	}
	e, err := parseEntry(m)
	if err == nil && (e.Tenant != tenant || e.Name != name) {
		err = fmt.Errorf("record %d of the book is another's", m.Seq)
	}
	return e, err
}

// bookSubject returns where a record stands: names may be anything, and of any length, so they are hashed.
func bookSubject(tenant, name string, decides uint64) string {
	hash := sha256.Sum256([]byte(name))
	subject := jslog.BookPrefix + agora.EncodeToken(tenant) + "." + hex.EncodeToString(hash[:20])
	if decides == 0 {
		return subject + ".open"
	}
	return subject + ".decision." + strconv.FormatUint(decides, 10)
}

// appendEntry appends a record: its version, its mark, tenant and name with their lengths before them, and the body.
func appendEntry(b []byte, e *Entry) []byte {
	b = append(b, bookVersion)
	b = append(b, e.mark[:]...)
	for _, s := range [...]string{e.Tenant, e.Name} {
		b = binary.AppendUvarint(b, uint64(len(s)))
		b = append(b, s...)
	}
	return append(b, e.Body...)
}

// parseEntry reads a record as it stands in the log.
func parseEntry(m *jslog.Record) (Entry, error) {
	e := Entry{Seq: m.Seq, Time: m.At}
	e.Label, _ = agora.DecodeToken(m.Label) // one that is none is as if there were none
	bad := fmt.Errorf("record %d of the book can't be read", m.Seq)
	if len(m.Body) < 1+markSize || m.Body[0] != bookVersion {
		return Entry{}, bad
	}
	copy(e.mark[:], m.Body[1:])
	rest := m.Body[1+markSize:]
	for _, s := range [...]*string{&e.Tenant, &e.Name} {
		n, size := binary.Uvarint(rest)
		if size <= 0 || n > uint64(len(rest)-size) {
			return Entry{}, bad
		}
		*s, rest = string(rest[size:size+int(n)]), rest[size+int(n):]
	}
	e.Body = rest
	if _, of, ok := strings.Cut(m.Subject, ".decision."); ok {
		var err error
		if e.Decides, err = strconv.ParseUint(of, 10, 64); err != nil {
			return Entry{}, bad
		}
	}
	if bookSubject(e.Tenant, e.Name, e.Decides) != m.Subject {
		return Entry{}, bad
	}
	return e, nil
}
