package p2p

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"sync"
	"time"
	"unicode/utf8"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// peerCarrier reaches the agents of the dialect by their protocols: over the connection of a peer that has reserved a
// place here, through the edge at which it has, or at the addresses that it has registered. It is their carrier. A
// request is put to a peer once.
type peerCarrier struct{ *dialer }

// Card implements carrier.Carrier: it is the card as the peer shows it now.
func (p peerCarrier) Card(ctx context.Context, c carrier.Call) (agora.Registration, error) {
	ctx, cancel := context.WithTimeout(ctx, cardTime)
	defer cancel()
	s, err := p.reach(ctx, &c, wire.CardProtocol)
	if err != nil {
		return agora.Registration{}, err
	}
	defer s.Close()
	defer context.AfterFunc(ctx, func() { _ = s.Reset() })()
	if err := s.CloseWrite(); err != nil {
		return agora.Registration{}, lost(ctx, err)
	}
	b, err := io.ReadAll(io.LimitReader(s, wire.MaxCard+1))
	if err != nil {
		return agora.Registration{}, lost(ctx, err)
	}
	if f, is := wire.ParseFault(b); is {
		return agora.Registration{}, failed(f)
	}
	if len(b) > wire.MaxCard || !json.Valid(b) {
		return agora.Registration{}, agora.Errorf(agora.StreamAborted, "peer %q shows no card", c.To.ID)
	}
	return agora.Registration{Media: wire.MediaCard, Body: b}, nil
}

// Handoff implements carrier.Carrier.
func (p peerCarrier) Handoff(ctx context.Context, c carrier.Call, h carrier.Handoff) (carrier.Answer, error) {
	if err := c.Actor.Spend(ctx, c.As, len(h.Input)+len(h.Params)+len(h.Path)); err != nil {
		return nil, err
	}
	life, stop := context.WithCancel(context.WithoutCancel(ctx))
	if c.Within > 0 {
		life, stop = context.WithTimeout(context.WithoutCancel(ctx), c.Within)
	}
	begin, cancel := context.WithTimeout(ctx, min(connectTime, p.cfg.Handoff.FirstByte))
	defer cancel()
	s, err := p.reach(begin, &c, wire.HandoffProtocol)
	if err != nil {
		stop()
		return nil, err
	}
	a := &answer{limits: &p.cfg.Handoff, stream: s, stop: stop, left: p.cfg.Handoff.Answer, wait: p.cfg.Handoff.FirstByte}
	a.over = context.AfterFunc(life, func() { _ = s.Reset() })
	a.life = life
	q := wire.Request(h)
	_ = s.SetWriteDeadline(time.Now().Add(p.cfg.Handoff.Within)) // what is over fails the write
	_, err = s.Write(q.Append(nil))
	if err == nil {
		err = s.CloseWrite()
	}
	if err != nil {
		a.Close()
		return nil, lost(ctx, err)
	}
	return a, nil
}

// CallTool implements carrier.Carrier: a tool is a path of its own.
func (p peerCarrier) CallTool(ctx context.Context, c carrier.Call, t carrier.Tool) (carrier.Answer, error) {
	return p.Handoff(ctx, c, carrier.Handoff{Method: "POST", Path: "/tools/" + wire.Escape(t.Name), Input: t.Arguments})
}

// failed is the failure that a peer has answered with, number and all.
func failed(f *wire.Fault) error {
	return &carrier.Failure{Err: &agora.Error{Code: f.Err.Code, Message: f.Err.Message, Cause: f}}
}

// lost is the error of a stream that has failed.
func lost(ctx context.Context, err error) error {
	if why := ctx.Err(); errors.Is(why, context.DeadlineExceeded) {
		return agora.Errorf(agora.Timeout, "the peer does not answer")
	}
	return &agora.Error{Code: agora.StreamAborted, Message: "the peer has broken off", Cause: err}
}

// reach opens a stream to an agent that is a peer.
func (d *dialer) reach(ctx context.Context, c *carrier.Call, p protocol.ID) (network.Stream, error) {
	id, err := peer.Decode(c.To.Peer)
	if err != nil {
		return nil, agora.Errorf(agora.AgentOffline, "agent %q is no peer", c.To.ID)
	}
	if err := d.mayReach(ctx, c, id); err != nil {
		return nil, err
	}
	s, err := d.streamTo(ctx, id, c.To.Addresses, p)
	if err != nil {
		return nil, &agora.Error{Code: agora.AgentOffline, Message: "peer of agent \"" + string(c.To.ID) + "\" can't be reached", Cause: err}
	}
	return s, nil
}

// mayReach returns nil where a caller may have a peer asked that the callee says it is. A peer takes what an edge hands
// to it as meant for its agent, so one that is bound to another agent than the callee is asked only for who may address
// that one. AGENT_OFFLINE, UNAVAILABLE.
func (d *dialer) mayReach(ctx context.Context, c *carrier.Call, id peer.ID) error {
	if c.Actor.Principal().Unverified {
		return nil
	}
	found, err := d.peers.find(ctx, id)
	if err == nil && found.Agent() == nil { // it may have been bound a moment ago
		found, err = d.peers.look(ctx, id)
	}
	if err != nil {
		return err
	}
	is := d.peers.agentOf(id, &found)
	if is == nil || is.Tenant == c.Actor.Principal().Tenant && (is.Agent == c.To.ID || c.Actor.MayAddress(is.Agent) == nil) {
		return nil
	}
	return agora.Errorf(agora.AgentOffline, "agent %q has registered a peer that has not proven to be it", c.To.ID)
}

func (d *dialer) streamTo(ctx context.Context, id peer.ID, addresses []string, p protocol.ID) (network.Stream, error) {
	ctx = network.WithAllowLimitedConn(ctx, "agora")
	if d.host.Network().Connectedness(id) == network.NotConnected {
		info := peer.AddrInfo{ID: id}
		for _, text := range addresses {
			if a, err := ma.NewMultiaddr(text); err == nil {
				if a, _ = peer.SplitAddr(a); a != nil {
					info.Addrs = append(info.Addrs, a)
				}
			}
		}
		if edges, err := d.elsewhere(ctx, id); err == nil {
			for _, e := range edges {
				info.Addrs = append(info.Addrs, e.circuits()...)
			}
		}
		if err := d.host.Connect(ctx, info); err != nil {
			return nil, err
		}
	}
	return d.host.NewStream(network.WithNoDial(ctx, "connected"), id, p)
}

// circuits returns where peers are reached that have reserved a place at an edge.
func (r *relay) circuits() (all []ma.Multiaddr) {
	for _, a := range r.Addrs {
		all = append(all, a.Encapsulate(ma.StringCast("/p2p/"+r.ID.String()+"/p2p-circuit")))
	}
	return all
}

const (
	mostWhole  = 256 << 10             // bytes of an answer that is waited for, to be told in one piece
	wholeTime  = 50 * time.Millisecond // and for how long
	pieceBytes = 64 << 10
)

// answer is what a peer answers to a request: whole, where it is short and comes at once; else a stream. JSON stays as
// it is, and so does text; anything else is bytes.
type answer struct {
	limits *Handoff
	stream network.Stream
	life   context.Context // ends with the deadline of the call
	stop   context.CancelFunc
	over   func() bool
	once   sync.Once
	left   int64
	wait   time.Duration // for the next piece

	begun, ended bool
	held         []byte // that was read and not told: of a rune that is not complete, when begun
	queue        []agora.Message
}

// Next implements carrier.Answer. It does not read on once ctx is over: then the call is.
func (a *answer) Next(ctx context.Context) (agora.Message, error) {
	defer context.AfterFunc(ctx, func() { _ = a.stream.Reset() })()
	for len(a.queue) == 0 {
		if a.ended {
			return agora.Message{}, io.EOF
		}
		if err := a.read(ctx); err != nil {
			return agora.Message{}, err
		}
	}
	m := a.queue[0]
	a.queue = a.queue[1:]
	return m, nil
}

// read reads more of the answer, and queues what is to be told.
func (a *answer) read(ctx context.Context) error {
	end := time.Now().Add(a.wait)
	if !a.begun && len(a.held) > 0 {
		end = time.Now().Add(wholeTime)
	}
	_ = a.stream.SetReadDeadline(end) // what is over fails to be read
	buf := make([]byte, pieceBytes)
	n, err := a.stream.Read(buf)
	if n > 0 {
		a.wait = a.limits.Idle
		if a.left -= int64(n); a.left < 0 {
			return agora.Errorf(agora.MessageTooLarge, "the answer has more than %d bytes", a.limits.Answer)
		}
		a.held = append(a.held, buf[:n]...)
	}
	switch {
	case errors.Is(err, io.EOF):
		return a.end()
	case err == nil && !a.begun && len(a.held) <= mostWhole:
		return nil // perhaps that is not all
	case err == nil:
		a.tell(false)
		return nil
	case ctx.Err() != nil:
		return lost(ctx, err)
	case a.life.Err() != nil:
		return lost(a.life, err)
	case timedOut(err) && !a.begun && len(a.held) > 0:
		a.tell(false)
		return nil
	case timedOut(err):
		return agora.Errorf(agora.Timeout, "the peer does not answer")
	}
	return lost(ctx, err)
}

func timedOut(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// end queues the last of the answer, or says that it is a failure.
func (a *answer) end() error {
	a.ended = true
	if a.begun {
		a.tell(true)
		a.queue = append(a.queue, agora.Message{Kind: agora.Reply, Part: agora.End})
		return nil
	}
	if f, is := wire.ParseFault(a.held); is {
		return failed(f)
	}
	a.queue = append(a.queue, agora.Message{Kind: agora.Reply, Part: agora.Whole, Body: a.held, Media: mediaOf(a.held, true)})
	a.held = nil
	return nil
}

// tell queues what is held as a chunk, but for the beginning of a rune that is not complete; last says that no more
// comes.
func (a *answer) tell(last bool) {
	if !a.begun {
		a.begun = true
		a.queue = append(a.queue, agora.Message{Kind: agora.Reply, Part: agora.Start})
	}
	n := len(a.held)
	if !last {
		n -= incomplete(a.held)
	}
	if n > 0 {
		a.queue = append(a.queue, agora.Message{Kind: agora.Reply, Part: agora.Chunk, Body: a.held[:n:n], Media: mediaOf(a.held[:n], false)})
	}
	a.held = append([]byte(nil), a.held[n:]...)
}

// incomplete returns how many bytes at the end of a text are the beginning of a rune.
func incomplete(b []byte) int {
	for n := 1; n < utf8.UTFMax && n <= len(b); n++ {
		if tail := b[len(b)-n:]; utf8.RuneStart(tail[0]) {
			if tail[0] >= utf8.RuneSelf && !utf8.FullRune(tail) {
				return n
			}
			return 0
		}
	}
	return 0
}

// mediaOf returns the media type of a piece of an answer; empty for JSON, where that may be.
func mediaOf(b []byte, jsonMay bool) string {
	switch {
	case jsonMay && json.Valid(b):
		return ""
	case utf8.Valid(b):
		return agora.MediaText
	}
	return "application/octet-stream"
}

// Close implements carrier.Answer.
func (a *answer) Close() {
	a.once.Do(func() {
		a.over()
		a.stop()
		if a.ended {
			_ = a.stream.Close()
			return
		}
		_ = a.stream.Reset()
	})
}
