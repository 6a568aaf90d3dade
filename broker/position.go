package broker

import (
	"context"
	"errors"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/jslog"
	"github.com/agora-relay/agora/broker/record"
	"github.com/agora-relay/agora/internal/pause"
)

// Place is what the log says of a position that a listener names as its own.
type Place int

// The places.
const (
	Own     Place = iota // delivery may go on behind it: a message of the address stands there, or nothing of it before
	Ahead                // the log has not come to it
	Foreign              // none of the address's: behind it, messages would be passed over that the address has
)

// Place returns what a position is to an address, of whose messages all up to after have arrived. The stream's leader
// says so: it costs one round trip, more where the position is not that of a message, and none up to after. While the
// log does not answer, as its servers agree on a leader, it is asked again until ctx is over; then the error is
// UNAVAILABLE.
func (b *Broker) Place(ctx context.Context, to agora.Address, seq, after uint64) (Place, error) {
	for {
		p, err := b.placeNow(ctx, to, seq, after)
		if err == nil || !pause.For(ctx, jslog.RetryPause) {
			return p, err
		}
	}
}

// placeNow is Place of a log that answers.
func (b *Broker) placeNow(ctx context.Context, to agora.Address, seq, after uint64) (Place, error) {
	if seq <= after {
		return Own, nil
	}
	at := jslog.Locate(to, b.cfg.Shards)
	m, err := b.log.At(ctx, at.Stream, seq>>agora.SeqShift)
	if errors.Is(err, jslog.ErrNone) {
		reached, failed := b.reached(ctx, at, seq)
		if failed != nil || !reached {
			return Ahead, failed
		}
		m, err = b.log.At(ctx, at.Stream, seq>>agora.SeqShift) // a new leader may have learned of it since
	}
	part := seq & (record.MaxParts - 1)
	switch {
	case err == nil && m.Subject == at.Log() && (seq <= m.End() || part == record.MaxParts-1):
		return Own, nil
	case err != nil && !errors.Is(err, jslog.ErrNone):
		return Own, jslog.Unavailable(err)
	}
	first, err := b.firstAfter(ctx, at, after)
	switch {
	case errors.Is(err, jslog.ErrNone):
		return Own, nil
	case err != nil:
		return Own, jslog.Unavailable(err)
	case first > seq>>agora.SeqShift:
		return Own, nil
	}
	return Foreign, nil
}

// firstAfter returns the sequence of the first record of an address that has parts behind a position; jslog.ErrNone
// where there is none.
func (b *Broker) firstAfter(ctx context.Context, at jslog.Location, after uint64) (uint64, error) {
	m, err := b.log.Next(ctx, at.Stream, at.Log(), max(after>>agora.SeqShift, 1))
	if err == nil && m.End() <= after {
		m, err = b.log.Next(ctx, at.Stream, at.Log(), m.Seq+1)
	}
	if err != nil {
		return 0, err
	}
	return m.Seq, nil
}

// reached reports whether the log has come to a position, by the word of the stream's leader, who is asked for as long
// as one that is new may know less than it is bound by.
func (b *Broker) reached(ctx context.Context, at jslog.Location, seq uint64) (bool, error) {
	for begun := agora.Ticks(); ; {
		s, err := b.log.State(ctx, at.Stream, "")
		if err != nil {
			return false, jslog.Unavailable(err)
		}
		if seq>>agora.SeqShift <= s.Last {
			return true, nil
		}
		if time.Duration(agora.Ticks()-begun) >= b.cfg.lag {
			return false, nil
		}
		if !pause.For(ctx, jslog.RetryPause) {
			return false, jslog.Unavailable(ctx.Err())
		}
	}
}

// Last returns the position of the last frame stored for to, read from the
// stream's leader; 0 when there is none.
func (b *Broker) Last(ctx context.Context, to agora.Address) (seq uint64, err error) {
	p := jslog.Locate(to, b.cfg.Shards)
	m, err := b.log.Last(ctx, p.Stream, p.Log())
	if errors.Is(err, jslog.ErrNone) {
		return 0, nil
	}
	if err != nil {
		return 0, jslog.Unavailable(err)
	}
	return m.End(), nil
}

// Unread returns how many records of to are stored after a position. It costs one Direct Get.
func (b *Broker) Unread(ctx context.Context, to agora.Address, after uint64) (records int, err error) {
	p := jslog.Locate(to, b.cfg.Shards)
	r, err := b.log.Read(ctx, jslog.Query{Stream: p.Stream, Subject: p.Log(), Seq: after>>agora.SeqShift + 1, Batch: 1})
	if err != nil {
		return 0, jslog.Unavailable(err)
	}
	return int(r.Count()), nil
}
