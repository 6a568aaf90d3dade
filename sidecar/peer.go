package sidecar

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/internal/p2phost"
	"github.com/agora-relay/agora/wire/p2p"
)

// refusalTime is how long a peer that may not ask has to take that answer.
const refusalTime = 10 * time.Second

// peerSide is the agent as a peer of libp2p.
type peerSide struct {
	up     *upstream
	limits *Limits
	log    *slog.Logger
	stats  *stats
	moved  chan struct{} // takes a token when edges are to be told of the peer
	gate   *gate
	key    crypto.PrivKey
	host   *p2phost.Host
	relays relays
	waits  *shares // one for each stream of a peer of which an edge is asked first
	places *shares // one for each stream that is served
	asking *shares // one for each request that the agent is asked for: peers leave room for members of the cluster

	mu     sync.Mutex // guards the fields below
	closed bool
	work   sync.WaitGroup // streams
}

// open has the peer listen; it serves nothing yet.
func (p *peerSide) open(cfg *Peer) error {
	var err error
	if p.key, err = cfg.key(); err != nil {
		return fmt.Errorf("key of the peer: %w", err)
	}
	listen, err := cfg.listen()
	if err != nil {
		return err
	}
	p.waits, p.places, p.asking = newShares(p.limits.Streams/4), newShares(p.limits.Streams), newShares(p.limits.Concurrent/2)
	wide := slices.DeleteFunc(slices.Clone(listen), manet.IsIPLoopback)
	p.host, err = p2phost.New(p2phost.Config{
		Key: p.key, Listen: listen, UserAgent: userAgent, Reserves: true,
		Pages: origin.Policy{Closed: true, Loopback: len(wide) == 0}, Admitter: new(conns), // web pages have the doors of edges
	})
	if err != nil {
		return fmt.Errorf("listen as a peer: %w", err)
	}
	for _, a := range wide {
		p.log.Warn("other machines reach the agent's port of libp2p: who may ask there is asked of the cluster", "address", a.String())
	}
	if err := p.relays.open(p, cfg.Relays); err != nil {
		return errors.Join(err, p.host.Close())
	}
	return nil
}

func (p *Peer) key() (crypto.PrivKey, error) {
	if p.KeyFile == "" {
		return p2phost.NewKey()
	}
	return p2phost.KeyIn(p.KeyFile)
}

func (p *Peer) listen() ([]ma.Multiaddr, error) {
	switch p.Listen {
	case "none":
		return nil, nil
	case "":
		return []ma.Multiaddr{ma.StringCast(DefaultListen)}, nil
	}
	a, err := p2phost.ListenAt(p.Listen)
	if err != nil {
		return nil, fmt.Errorf("address of the peer: %w", err)
	}
	return []ma.Multiaddr{a}, nil
}

func (p *peerSide) id() string { return p.host.ID().String() }

// prove returns a binding as what the peer has signed; nil where its key can't sign.
func (p *peerSide) prove(b p2p.Binding) *p2p.Proof {
	signature, err := p.key.Sign(b.Statement())
	if err != nil {
		p.log.Debug("the peer's key does not sign", "err", err)
		return nil
	}
	proof := &p2p.Proof{Edge: b.Edge, Time: b.Time, Signature: signature}
	if _, err := p.host.ID().ExtractPublicKey(); err != nil { // the id is but a hash of it
		proof.PublicKey, _ = crypto.MarshalPublicKey(p.key.GetPublic()) // of a key that has signed it never fails
	}
	return proof
}

// serve offers the protocols, and keeps places at relays, until ctx ends; requests that are in progress then go on
// until work ends.
func (p *peerSide) serve(ctx, work context.Context) {
	p.host.SetStreamHandler(p2p.CardProtocol, p.handles(work, p.serveCard))
	p.host.SetStreamHandler(p2p.HandoffProtocol, p.handles(work, p.serveHandoff))
	p.relays.run(ctx)
}

// handles returns what handles a stream, which is waited for. A peer that may not ask is told so, and nothing that it
// says is read; streams beyond Limits.Streams, or the caller's share of them, are reset.
func (p *peerSide) handles(work context.Context, f func(context.Context, network.Stream)) network.StreamHandler {
	return func(s network.Stream) {
		if !p.begin() {
			_ = s.Reset()
			return
		}
		defer p.work.Done()
		ctx, stop := context.WithCancel(work)
		defer stop()
		defer context.AfterFunc(ctx, func() { _ = s.SetDeadline(time.Now()) })()
		caller := s.Conn().RemotePeer()
		err := p.admit(ctx, caller)
		switch {
		case err != nil:
			p.stats.asked(err)
			p2phost.Refuse(s, p2p.AppendFault(nil, err), refusalTime)
		case p.places.try(caller):
			defer p.places.give(caller)
			f(ctx, s)
		default:
			_ = s.Reset() // nothing more can be done with it
		}
	}
}

// admit returns nil where a peer may ask the agent. Streams that wait for an edge's word are few, whoever opens them.
func (p *peerSide) admit(ctx context.Context, caller peer.ID) error {
	if known, err := p.gate.standing(caller); known {
		return err
	}
	if !p.waits.try(caller) {
		return errUnasked
	}
	defer p.waits.give(caller)
	return p.gate.admit(ctx, caller)
}

// begin notes that a stream is served, unless nothing new is begun any more.
func (p *peerSide) begin() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return false
	}
	p.work.Add(1)
	return true
}

// wait refuses what comes from now on, and returns when no stream is served any more.
func (p *peerSide) wait() {
	p.host.RemoveStreamHandler(p2p.CardProtocol)
	p.host.RemoveStreamHandler(p2p.HandoffProtocol)
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.work.Wait()
}

// close ends the peer. It goes behind wait, where there was a serve.
func (p *peerSide) close() {
	p.relays.wait()
	if err := p.host.Close(); err != nil {
		p.log.Debug("peer did not close well", "err", err)
	}
}

// serveCard gives the agent's card, whatever the caller writes.
func (p *peerSide) serveCard(ctx context.Context, s network.Stream) {
	b, err := p.up.look(ctx)
	if err != nil {
		b = p2p.AppendFault(nil, err)
	}
	p.stats.asked(err)
	p.finish(s, b)
}

// serveHandoff puts the request on a stream to the agent, and writes what that answers as it comes.
func (p *peerSide) serveHandoff(ctx context.Context, s network.Stream) {
	limit := p.limits
	_ = s.SetReadDeadline(time.Now().Add(limit.Within)) // what is over fails to be read
	in := &kept{Reader: s, over: p2phost.AdmissionOf(s.Conn())}
	defer in.release()
	q, err := p2p.Read(in, limit.Request)
	if err == nil {
		_ = s.SetReadDeadline(time.Time{})
		err = p.handOff(ctx, s, &q)
	}
	err = cmp.Or(in.full, err)
	p.stats.asked(err)
	if broken, ok := errors.AsType[*p2phost.BrokenOff](err); ok {
		p.log.Debug("an answer was not written to its end", "peer", s.Conn().RemotePeer().String(), "err", broken.Why)
		_ = s.Reset()
		return
	}
	if err != nil {
		p.finish(s, p2p.AppendFault(nil, err))
	}
}

// kept reads a request, and counts what it has read.
type kept struct {
	io.Reader
	over p2phost.Admission
	n    int
	full error // why it reads no further
}

// keptTwice is how much is kept of each byte: what decodes a request makes room for as much again.
const keptTwice = 2

// Read implements io.Reader.
func (k *kept) Read(b []byte) (int, error) {
	n, err := k.Reader.Read(b)
	k.n += keptTwice * n
	if !k.over.Hold(keptTwice * n) {
		k.full = agora.Errorf(agora.Unavailable, "the sidecar holds as much as it can: try again later")
		return 0, k.full
	}
	return n, err
}

// release has what was read count no more.
func (k *kept) release() { k.over.Hold(-k.n) }

func (p *peerSide) handOff(ctx context.Context, s network.Stream, q *p2p.Request) error {
	ctx, stop := context.WithCancel(ctx)
	var watching sync.WaitGroup
	watching.Go(func() { p2phost.Watch(s, stop) })
	defer watching.Wait()
	defer func() { _ = s.SetReadDeadline(time.Now()) }() // ends the watch
	defer stop()
	if err := p.turn(ctx, s.Conn().RemotePeer()); err != nil {
		return err
	}
	defer p.asking.give(s.Conn().RemotePeer())
	x, err := p.up.ask(ctx, q)
	if err != nil {
		return err
	}
	defer x.Close()
	return p.copy(s, x)
}

// turn waits until the agent may be asked for one more request of a caller.
func (p *peerSide) turn(ctx context.Context, caller peer.ID) error {
	soon, cancel := context.WithTimeoutCause(ctx, p.limits.FirstByte, errLate)
	defer cancel()
	err := p.asking.take(soon, caller)
	if err != nil && ctx.Err() != nil {
		return &p2phost.BrokenOff{Why: ctx.Err()}
	}
	return err
}

// copy writes an answer as it comes, and ends the stream where it has ended.
func (p *peerSide) copy(s network.Stream, x *answer) error {
	for {
		b, err := x.next()
		if len(b) > 0 {
			_ = s.SetWriteDeadline(time.Now().Add(p.limits.Idle))
			if _, failed := s.Write(b); failed != nil {
				return &p2phost.BrokenOff{Why: failed}
			}
		}
		if errors.Is(err, io.EOF) {
			p.finish(s, nil)
			return nil
		}
		if err != nil {
			return &p2phost.BrokenOff{Why: err}
		}
	}
}

// finish writes the last of an answer, and ends the stream.
func (p *peerSide) finish(s network.Stream, b []byte) { p2phost.Finish(s, b, p.limits.Idle) }
