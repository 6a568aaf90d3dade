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
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/iat"
)

// stream names a stream to the agent.
type stream struct {
	peer agora.AgentID
	name string
}

const (
	recallBytes = 64 << 10 // that are read at a time where a stream's beginning is looked for
	recallTime  = 5 * time.Second
	maxStreams  = 4096 // whose names are kept in mind
)

// Encode appends deliveries as envelopes: it implements deliver.Line.
func (l *link) Encode(dst []byte, ds []edge.Delivery, w *deliver.Writer) []byte {
	l.door.stats.Moved.Add(int64(len(ds)))
	now := l.door.now()
	for i := range ds {
		dst = l.appendDelivery(dst, &ds[i], now, w)
	}
	return dst
}

// appendDelivery appends a delivery, which is said to be at a time.
func (l *link) appendDelivery(dst []byte, d *edge.Delivery, now time.Time, w *deliver.Writer) []byte {
	m := d.Message
	if m == nil || !iat.Shows(m) {
		l.note(m)
		return dst
	}
	t := iat.Delivery{Redelivered: d.Redelivered, DeadlineMS: d.DeadlineMS, Time: now, Parent: m.Meta.Parent}
	if m.Meta.Dialect != iat.Dialect {
		t.ID, t.Parent = l.name(m, w)
		t.Trace = madeTrace(m)
	}
	l.note(m)
	if m.Kind == agora.Reply && (m.Part == agora.Whole || m.Part.Ends()) && l.ends(m.From, t.Parent) && m.Meta.Dialect != iat.Dialect {
		w.Waits()
		l.door.done(l.out.Context(), presence.Execute{Tenant: m.To.Tenant, Callee: m.From, Caller: l.agent, Request: t.Parent})
	}
	dst = l.line.begin(dst, m.Seq)
	return l.end(iat.AppendEnvelope(dst, m, t), len(dst), m.Seq)
}

// name returns the ids that the envelope of a message of another dialect has, empty for what goes by its position, and
// names.
func (l *link) name(m *agora.Message, w *deliver.Writer) (id, parent string) {
	if m.Kind == agora.Request && m.Part <= agora.Start {
		return requestID(m), m.Meta.Parent
	}
	if parent = m.Meta.Parent; parent == "" && m.Stream != "" {
		k := stream{m.From, m.Stream}
		opener, known := l.streams[k]
		if !known && m.Part != agora.Start && m.Kind != agora.Control {
			l.recall(k, m.Seq, w)
			opener = l.streams[k]
		}
		parent = cmp.Or(opener, m.Stream)
	}
	return "", parent
}

// recall looks in the log for the beginning of a stream that an earlier downlink has delivered, before a position.
func (l *link) recall(k stream, before uint64, w *deliver.Writer) {
	w.Waits()
	ctx, cancel := context.WithTimeout(l.out.Context(), recallTime)
	defer cancel()
	s := l.out.Session.Load()
	r := s.Catchup(0, func() {})
	defer r.Close()
	for {
		ds, err := r.Next(ctx, recallBytes)
		if err != nil || len(ds) == 0 { // then it goes by its own name
			return
		}
		for i := range ds {
			m := ds[i].Message
			if m.Seq >= before {
				return
			}
			if m.From == k.peer && m.Stream == k.name && m.Part == agora.Start {
				l.note(m)
				s.NameStream(k.peer, k.name, l.streams[k])
			}
		}
	}
}

// note keeps in mind which envelope has opened a stream.
func (l *link) note(m *agora.Message) {
	if m == nil || m.Stream == "" || m.Meta.Dialect == iat.Dialect || m.Part == agora.Chunk {
		return
	}
	k := stream{m.From, m.Stream}
	switch {
	case m.Part == agora.Start && len(l.streams) < maxStreams:
		if l.streams == nil {
			l.streams = map[stream]string{}
		}
		if l.streams[k] = requestID(m); m.Kind == agora.Reply {
			l.streams[k] = m.Meta.Parent
		} else if m.Meta.Request == "" {
			l.out.Session.Load().NameStream(m.From, m.Stream, l.streams[k])
		}
	case m.Part.Ends():
		delete(l.streams, k)
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

// madeTrace is the trace id of an envelope that the door makes of a message that belongs to no trace: the same whenever
// it is delivered again.
func madeTrace(m *agora.Message) string {
	h := fnv.New128a()
	io.WriteString(h, string(m.From))
	return hex.EncodeToString(binary.BigEndian.AppendUint64(h.Sum(nil)[:8], m.Seq))
}

// seqID is the id of an envelope that the door makes: the same whenever it is delivered again.
func seqID(m *agora.Message) string { return "agora-" + strconv.FormatUint(m.Seq, 10) }
