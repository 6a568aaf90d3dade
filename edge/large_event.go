package edge

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/presence"
)

// putCut sends an event that was cut: its parts go as a stream, and are one frame to its sender. The last part has the
// frame's number and receipt, as all of the event is stored when that is, and its outcome is the one answer to the frame.
func (s publisher) putCut(ctx context.Context, m agora.Message, parts []json.RawMessage, w Want) error {
	s.out.blocked.begin()
	defer s.out.blocked.end()
	key, n, want := m.ID, m.N, w.Receipts|s.wants
	m.Meta.Receipts = want &^ agora.Stored
	span := s.node.cfg.Tracer.Send(&m)
	var first *agora.Error // that a part met; outcomes come in the order of the parts, one at a time
	note := relay.AskerFunc(func(t relay.Sent) {
		switch {
		case t.Err == nil:
			s.node.stats.sent.Add(1)
		case first == nil:
			first = agora.AsError(t.Err)
		}
	})
	for i, part := range parts {
		m.Part, m.Body, m.Indexed, m.Index, m.ID, m.N = agora.Chunk, part, true, uint32(i), partKey(key, i), 0
		if i == 0 {
			m.Part = agora.Start
		}
		err := s.out.sender().Send(ctx, m, relay.Options{Receipts: want, Piece: true, Asker: note})
		if err != nil {
			span.End(agora.AsError(err))
			return s.cutShort(m, n, i, err)
		}
		m.Meta.Trace = ""
	}
	m.Part, m.Body, m.Index, m.ID, m.N = agora.End, nil, uint32(len(parts)), partKey(key, len(parts)), n
	last := asker{&s.out, w.Told, w.failed, span}
	err := s.out.sender().Send(ctx, m, relay.Options{Receipts: want, Frame: w.RequestID, Piece: true, Asker: relay.AskerFunc(func(t relay.Sent) {
		if t.Err != nil && agora.AsError(t.Err).Code == agora.StreamNotFound && first != nil {
			t.Err = first // it never began
		}
		last.Told(t)
	})})
	if err != nil {
		span.End(agora.AsError(err)) // it is nobody's
		return s.cutShort(m, n, len(parts), err)
	}
	return nil
}

// cutShort returns why part i of an event was refused, and ends the event for the members where it will not be said again.
func (s publisher) cutShort(m agora.Message, n uint64, i int, err error) error {
	again := n > 0 && agora.AsError(err).Passes() || errors.Is(err, presence.ErrDeposed)
	if i > 0 && !again {
		s.out.sender().Broken(m.To, m.Stream, n, err)
	}
	return err
}

// partKey is the idempotency key of part i of an event.
func partKey(key string, i int) string {
	if key == "" {
		return ""
	}
	return key + "/" + strconv.Itoa(i)
}
