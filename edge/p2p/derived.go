package p2p

import (
	"bytes"
	"context"
	"crypto/ed25519"
	"crypto/hkdf"
	"crypto/sha256"
	"errors"
	"io"
	"net"
	"sync"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	identify "github.com/libp2p/go-libp2p/p2p/protocol/identify"
	idpb "github.com/libp2p/go-libp2p/p2p/protocol/identify/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/ping"
	ma "github.com/multiformats/go-multiaddr"
	multistream "github.com/multiformats/go-multistream"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// derived is the peers that agents of other dialects are: each has a key that every edge can make of the cluster's, and
// every edge ends the circuits to it.
type derived struct {
	key []byte // the cluster's; nil where there are none

	mu  sync.Mutex // guards the fields below
	ids map[agora.Address]peer.ID
	of  map[peer.ID]agora.Address
	at  map[string]time.Time // when the agents of a tenant were looked through
}

// mostDerived is how many of them an edge keeps in mind.
const mostDerived = 1 << 16

// keyOf returns the key of an agent, which is the same at every edge.
func (v *derived) keyOf(at agora.Address) (crypto.PrivKey, error) {
	seed, err := hkdf.Key(sha256.New, v.key, []byte("agora p2p"), at.Tenant+"\x00"+string(at.Agent), ed25519.SeedSize)
	if err != nil {
		return nil, err
	}
	return crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed))
}

// idOf returns the peer id of an agent; false where there are none.
func (v *derived) idOf(at agora.Address) (peer.ID, bool) {
	if v.key == nil {
		return "", false
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	if id, known := v.ids[at]; known {
		return id, true
	}
	key, err := v.keyOf(at)
	if err != nil {
		return "", false
	}
	id, err := peer.IDFromPrivateKey(key)
	if err != nil {
		return "", false
	}
	if len(v.ids) >= mostDerived || v.ids == nil {
		v.ids, v.of = map[agora.Address]peer.ID{}, map[peer.ID]agora.Address{}
	}
	v.ids[at], v.of[id] = id, at
	return id, true
}

// has reports whether a peer id is known here to be derived of an agent's.
func (v *derived) has(p peer.ID) bool {
	v.mu.Lock()
	defer v.mu.Unlock()
	_, known := v.of[p]
	return known
}

// find returns the agent whose id a peer id is derived of, among those that an actor may see.
func (v *derived) find(ctx context.Context, a *edge.Actor, p peer.ID) (agora.Address, bool) {
	if v.key == nil {
		return agora.Address{}, false
	}
	tenant := a.Principal().Tenant
	v.mu.Lock()
	at, known := v.of[p]
	lately := time.Since(v.at[tenant]) < freshTime
	if !known && !lately {
		if v.at == nil {
			v.at = map[string]time.Time{}
		}
		v.at[tenant] = time.Now()
	}
	v.mu.Unlock()
	if known || lately { // who is new is known here once it was listed as a peer, and a second later at the latest
		return at, known && at.Tenant == tenant
	}
	all, err := a.Directory().Counted().All(ctx)
	if err != nil {
		return at, false
	}
	for i := range all {
		if all[i].Peer != "" {
			continue
		}
		at := agora.ToAgent(tenant, all[i].ID)
		if id, is := v.idOf(at); is && id == p {
			return at, true
		}
	}
	return at, false
}

// own connects a peer with an agent of another dialect, and serves that circuit until it is over; false where there is
// no such agent.
func (h *hop) own(ctx context.Context, s network.Stream, to peer.ID) bool {
	a, as, err := h.peers.speaker(ctx, s.Conn().RemotePeer())
	h.conns.heard(ctx, counted(s.Conn()), s.Conn().RemotePeer(), a, err)
	if err != nil {
		return false
	}
	at, is := h.derived.find(ctx, a, to)
	if !is {
		return false
	}
	if err := a.SpendBeside(as); err != nil {
		h.answer(s, statusOf(err))
		return true
	}
	h.stats.hop(pbv2.Status_OK)
	if err := writeStatus(s, pbv2.Status_OK, nil); err != nil { // it goes no further: nothing is relayed, and nothing limited
		_ = s.Reset()
		return true
	}
	h.stats.Derived.Add(1)
	defer h.stats.Derived.Add(-1)
	_ = s.SetDeadline(time.Now().Add(h.cfg.Relay.Duration)) // what is over fails to be read
	if err := h.server.beAgent(s, at); err != nil {
		h.cfg.Log.Debug("a circuit to an agent has failed", "agent", at.Agent, "err", err)
		_ = s.Reset()
	}
	return true
}

// beAgent is the peer that an agent is, for one circuit.
func (v *server) beAgent(s network.Stream, at agora.Address) error {
	key, err := v.derived.keyOf(at)
	if err != nil {
		return err
	}
	over := counted(s.Conn())
	up, err := p2phost.Upgrader(key, &network.NullResourceManager{}, nil, within{over})
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(v.ctx, hopTime)
	defer cancel()
	conn, err := up.Upgrade(ctx, nil, circuit{s}, network.DirInbound, "", &network.NullScope{})
	if err != nil {
		return err
	}
	defer conn.Close()
	mux := multistream.NewMultistreamMuxer[protocol.ID]()
	serves := func(p protocol.ID, f func(network.MuxedStream)) {
		mux.AddHandler(p, func(_ protocol.ID, rwc io.ReadWriteCloser) error {
			f(rwc.(network.MuxedStream))
			return nil
		})
	}
	from := conn.RemotePeer()
	serves(wire.CardProtocol, func(s network.MuxedStream) { v.serveCard(&question{s, over, from, at}) })
	serves(wire.HandoffProtocol, func(s network.MuxedStream) { v.serveHandoff(&question{s, over, from, at}) })
	serves(ping.ID, answerPings)
	serves(identify.ID, func(s network.MuxedStream) {
		finish(s, identity(key.GetPublic(), mux.Protocols(), conn.RemoteMultiaddr()))
	})
	var streams sync.WaitGroup
	defer streams.Wait()
	slots := make(chan struct{}, mostStreams)
	for {
		s, err := conn.AcceptStream()
		if err != nil {
			return nil // its peer has hung up, or its time is over
		}
		select {
		case slots <- struct{}{}:
		default:
			_ = s.Reset()
			continue
		}
		streams.Go(func() {
			defer func() { <-slots }()
			_ = s.SetDeadline(time.Now().Add(hopTime)) // what is over fails to be read
			p, handle, err := mux.Negotiate(s)
			if err != nil {
				_ = s.Reset()
				return
			}
			_ = s.SetDeadline(time.Time{})
			_ = handle(p, s) // it never fails
		})
	}
}

// within admits a connection that goes over a circuit: what is kept of it counts with the connection over which the
// circuit comes.
type within struct{ over *conn }

// Admit implements p2phost.Admitter.
func (w within) Admit(p2phost.Secured) (p2phost.Admission, error) { return &inner{over: w.over}, nil }

// inner is a connection that goes over a circuit.
type inner struct {
	over *conn

	mu   sync.Mutex // guards the fields below
	held int
	gone bool
}

// Hold implements p2phost.Admission.
func (i *inner) Hold(n int) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.gone {
		return false
	}
	i.held += n
	return i.over.Hold(n)
}

// Stream implements p2phost.Admission: streams that are served are counted where they are.
func (*inner) Stream(int) bool { return true }

// Release implements p2phost.Admission.
func (i *inner) Release() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.gone = true
	i.over.Hold(-i.held)
	i.held = 0
}

// mostStreams is how many streams of one circuit are served at a time.
const mostStreams = 64

// answerPings says again what is said, as the ping protocol has it.
func answerPings(s network.MuxedStream) {
	defer s.Close()
	var b [ping.PingSize]byte
	for {
		if _, err := io.ReadFull(s, b[:]); err != nil {
			return
		}
		if _, err := s.Write(b[:]); err != nil {
			return
		}
	}
}

// identity is what a derived peer says of itself.
func identity(key crypto.PubKey, protocols []protocol.ID, seen ma.Multiaddr) []byte {
	k, err := crypto.MarshalPublicKey(key)
	if err != nil {
		return nil // a key of libp2p's own
	}
	agent, version := "agora", "ipfs/0.1.0"
	m := &idpb.Identify{AgentVersion: &agent, ProtocolVersion: &version, PublicKey: k, ObservedAddr: seen.Bytes(), Protocols: protocol.ConvertToStrings(protocols)}
	var b bytes.Buffer
	if err := util.NewDelimitedWriter(&b).WriteMsg(m); err != nil {
		return nil // a buffer takes all
	}
	return b.Bytes()
}

// circuit is the stream of a circuit as a connection.
type circuit struct{ network.Stream }

// LocalMultiaddr implements manet.Conn.
func (c circuit) LocalMultiaddr() ma.Multiaddr { return c.Conn().LocalMultiaddr() }

// RemoteMultiaddr implements manet.Conn.
func (c circuit) RemoteMultiaddr() ma.Multiaddr { return c.Conn().RemoteMultiaddr() }

// LocalAddr implements net.Conn.
func (c circuit) LocalAddr() net.Addr { return circuitAddr(c.LocalMultiaddr().String()) }

// RemoteAddr implements net.Conn.
func (c circuit) RemoteAddr() net.Addr { return circuitAddr(c.RemoteMultiaddr().String()) }

// Close implements net.Conn.
func (c circuit) Close() error {
	return errors.Join(c.Stream.CloseWrite(), c.Stream.Close())
}

type circuitAddr string

// Network implements net.Addr.
func (circuitAddr) Network() string { return "libp2p-circuit" }

// String implements net.Addr.
func (a circuitAddr) String() string { return string(a) }
