package edge

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/guard"
	"github.com/agora-relay/agora/presence"
)

// Want is what the sender wants to be told of a message.
type Want struct {
	RequestID string         // id of the frame: names it in receipts and errors
	Receipts  agora.Receipts // tiers asked for on the frame; those of the connection are added
	Trace     string         // traceparent of an event; that of a message is its own
	Request   string         // the request's own id, which its reply will carry: for a deadline
	Told      func(Notice)   // is told what else the connection would be, on a goroutine that must not be blocked; the connection if nil

	failed func() // is called before whoever is told where what is sent is refused; may be nil
}

// Send takes a message of the relay's verbs: m has Kind, Part, Stream, Index,
// N, To.Agent, Body and Meta, and as ID the client's own id. It blocks while
// too much is under way, or the rate of chunks is spent. An error is the
// answer to the frame; what comes later comes as a notice. A stream that was
// refused is answered once: for its later parts Send returns nil.
func (s *Session) Send(ctx context.Context, m agora.Message, w Want) error {
	to := agora.ToAgent(s.claim.Tenant, m.To.Agent)
	return ordered{s}.do(ctx, to, m.N, m.Stream, m.Part, func() error { return mailer{s}.send(ctx, m, w) })
}

// mailer says what an agent has to say to others.
type mailer struct{ *Session }

func (s mailer) send(ctx context.Context, m agora.Message, w Want) error {
	if err := s.usable(); err != nil {
		return err
	}
	if strings.Contains(m.Stream, reserved) || strings.Contains(m.ID, reserved) {
		return errReserved
	}
	m.From, m.To.Tenant = s.claim.Agent, s.claim.Tenant
	if decides, err := s.decide(ctx, &m, w); decides {
		return err
	}
	to, err := s.out.sender().Route(ctx, &m)
	if m.To = to; m.To.IsBox() {
		if decides, err := s.decide(ctx, &m, w); decides {
			return err
		}
	}
	if m.Part == agora.Whole {
		m.Stream = "" // has said what it answers
	}
	if m.Kind == agora.Request && m.Part == agora.Cancel {
		return s.cancel(ctx, m, w)
	}
	if err == nil {
		err = authorizer(s).mayAddress(ctx, &m)
	}
	if err == nil {
		err = checkDepth(&m, s.node.cfg.Depth)
	}
	if err == nil {
		err = s.out.spend(ctx, &m)
	}
	if err == nil {
		err = s.node.screens.check(ctx, s.actor, &m)
	}
	if err != nil {
		err = s.out.sender().Undecided(m.To, m.N, err)
		if m.Part == agora.Start {
			s.out.sender().Unstarted(m.To, m.Stream, m.N, err)
		}
		return err
	}
	if m.Kind == agora.Control { // a request is given up: its deadline counts no more
		s.out.sender().Replied(m.To, m.AbortBody().Request)
	}
	if w.RequestID != "" {
		w.Receipts |= agora.Stored
	}
	if m.ID != "" {
		m.ID = Key(m.ID, append([]byte{byte(m.Kind), byte(m.Part)}, m.Media...), []byte(m.Stream), m.Body)
	}
	return s.out.put(ctx, m, w)
}

// ordered does verbs of a session in the order of their frames.
type ordered struct{ *Session }

// do does a verb, unless its frame is numbered and one before it was
// refused for the moment and has not come again: stored now, it would overtake
// it for good. A part of a stream that is refused here leaves a hole, so the
// stream is ended for its receiver, unless its start comes again as well, or
// nothing but a number that was too much is in its way.
func (s ordered) do(ctx context.Context, to agora.Address, n uint64, stream string, part agora.Part, verb func() error) error {
	err := s.out.sender().Follows(to, n, stream, part)
	missed := err != nil && s.out.sender().Misses(to, stream)
	if err == nil {
		if err = s.asHolder(ctx, verb); err != nil {
			s.out.sender().Refused(to, n, err)
		}
	}
	if err != nil && part == agora.Start {
		s.out.sender().StartRefused(to, stream, n, err)
	}
	if hole := !missed && s.leavesHole(ctx, n, err); hole && (part == agora.Chunk || part == agora.End) {
		s.out.sender().Broken(to, stream, n, err)
	}
	return err
}

// asHolder does what presence allows to the holder of the claim alone. Should presence have lost the claim, it is told
// of it again first.
func (s ordered) asHolder(ctx context.Context, do func() error) error {
	err := do()
	if !errors.Is(err, presence.ErrDeposed) || !guard.Looks {
		return err
	}
	held, failed := leaver(s).reassert(ctx)
	switch {
	case failed != nil: // it is not known to be another's
		return agora.AsError(failed)
	case held:
		return do()
	}
	return err
}

// leavesHole reports whether the error of a part means that its stream must end.
// A numbered part is sent again wherever the session goes on: once the
// socket is gone here, or the claim, the stream is the successor's, and what is
// refused from then on is no news of it. A part without a number that is
// dropped here is missed by nobody.
func (s ordered) leavesHole(ctx context.Context, n uint64, err error) bool {
	if err == nil {
		return false
	}
	return s.life.goesOn(ctx.Err() != nil || errors.Is(err, presence.ErrDeposed), n > 0)
}

// Key makes an idempotency key of a client's id and of what it said: sent
// again it is the same message, with other content it is another one. It is
// empty where id is.
func Key(id string, said ...[]byte) string {
	if id == "" {
		return ""
	}
	h := uint64(fnvOffset)
	for _, b := range said {
		for _, c := range b {
			h = (h ^ uint64(c)) * fnvPrime
		}
		h = (h ^ 0xff) * fnvPrime // never part of UTF-8, so that parts can't run into each other
	}
	var room [128]byte
	return string(strconv.AppendUint(append(append(room[:0], id...), keyMark...), h, 36))
}

// The hash of a key is FNV-1a, of 64 bits. hash/fnv would have each part of what was said allocated.
const (
	fnvOffset = 14695981039346656037
	fnvPrime  = 1099511628211
)

// EventKey is [Key] of an event, whose data is what the client wrote: what the cluster adds to it, the time for one, is
// not the same when the client sends it again. Without an id the number n names it, where there is one.
func EventKey(id string, n uint64, data []byte) string {
	if id == "" && n > 0 {
		id = reserved + strconv.FormatUint(n, 10)
	}
	return Key(id, data)
}

var errReserved = agora.Errorf(agora.InvalidRequest, "stream_id and id must not hold the character U+0000")

// reserved is the character that no client's name may hold: the cluster's own
// names are told from them by it.
const reserved = "\x00"

// keyMark stands between a client's id and the content's hash.
const keyMark = reserved

// ClientID returns the client's id of a key.
func ClientID(key string) string {
	id, _, _ := strings.Cut(key, keyMark)
	return id
}

// cancel ends a stream for both ends: an own one by a part of it, a peer's by
// asking its edge. What the peer still sends of it is not shown any more, in
// later sessions either.
func (s mailer) cancel(ctx context.Context, m agora.Message, w Want) error {
	if err := s.out.beside(ctx); err != nil {
		return err
	}
	if name := s.incoming.find(m.To, m.Stream); name != m.Stream {
		m.Stream = name
		m.To, _ = s.out.sender().Route(ctx, &m) // a cancel is no answer
	}
	peer := m.To.Peer() // where that is a box, the stream is the request of its call, or the answer
	k := streamKey{peer, m.Stream}
	of, incoming := s.incoming.isOpen(k)
	_, _, upTo := s.cursor.mailbox()
	kind, own := s.out.sender().Sends(peer, m.Stream)
	own = own && (m.To == peer || m.To == s.out.sender().Box(peer, m.Stream)) // else a request of that name is meant
	// After a resume the beginning of a stream may lie before what this edge has seen.
	if !own && !incoming && !s.claim.Resumed {
		return agora.Errorf(agora.StreamNotFound, "no stream %q to or from %q is open", m.Stream, peer.Agent)
	}
	if !own && !incoming { // what this edge knows to be between the two may be ended by either
		if err := authorizer(s).mayAddress(ctx, &m); err != nil {
			return err
		}
	}
	if incoming || !own {
		st := presence.Stream{Peer: peer.Agent, Stream: m.Stream, Seq: upTo}
		if err := s.node.cfg.Presence.Lanes.Cancel(ctx, s.claim, st); err != nil {
			return agora.AsError(err)
		}
		s.incoming.cancel(k, upTo)
	}
	m.Kind = agora.Control
	if own {
		m.Kind = kind
	}
	if w.RequestID != "" {
		w.Receipts |= agora.Stored
	}
	m.ID = Key(m.ID, []byte("cancel"), []byte(m.Stream))
	if incoming {
		w.failed = func() { s.incoming.reopen(k, of) }
	}
	err := s.out.put(ctx, m, w)
	switch {
	case err == nil:
		s.out.sender().Cut(m.To.Space, m.Stream)
	case incoming:
		s.incoming.reopen(k, of)
	}
	return err
}

// peerAddress is the address that presence's name of a peer stands for: an
// agent, or a space behind a mark that no id begins with.
func peerAddress(tenant string, peer agora.AgentID) agora.Address {
	if name, ok := strings.CutPrefix(string(peer), spaceMark); ok {
		return agora.ToSpace(tenant, name)
	}
	return agora.ToAgent(tenant, peer)
}

const spaceMark = reserved
