package p2p

import (
	"context"
	"io"
	"time"

	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	library "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/relay"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	ma "github.com/multiformats/go-multiaddr"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

// hop answers the HOP messages of Circuit Relay v2: who may, and what concerns other edges and agents of other
// dialects, is decided here; the library's relay keeps reservations, and connects those that have one here.
type hop struct {
	*shared
	peers    *known
	conns    *conns
	relays   *relays
	reserved *reservations
	circuits *circuits
	dialer   *dialer
	derived  *derived
	server   *server

	library network.StreamHandler // of its relay; nil where there is none
	relay   *library.Relay
}

// open makes the library's relay.
func (h *hop) open() (err error) {
	c := h.cfg.Relay
	if c.Off {
		return nil
	}
	behind := &handlerOf{Host: h.host}
	h.relay, err = library.New(behind,
		library.WithResources(library.Resources{
			Limit:          &library.RelayLimit{Duration: c.Duration, Data: c.Data},
			ReservationTTL: time.Hour, MaxReservations: c.Reservations, MaxReservationsPerIP: c.PerIP, MaxReservationsPerASN: c.Reservations,
			MaxCircuits: 1 << 30, // they are counted here: a stream of another edge is no circuit of its peer
			BufferSize:  copyBuffer,
		}),
		library.WithReservationAddressFilter(func(ma.Multiaddr) bool { return true }), // also private ones: where agents are, there may be no others
		library.WithMetricsTracer(relayed{&h.stats}),
	)
	h.library = behind.handler
	return err
}

// close ends the library's relay.
func (h *hop) close() {
	if h.relay != nil {
		_ = h.relay.Close() // it never fails
	}
}

// handlerOf is a host whose stream handler is kept, and not set.
type handlerOf struct {
	host.Host
	handler network.StreamHandler
}

// SetStreamHandler implements host.Host.
func (c *handlerOf) SetStreamHandler(_ protocol.ID, f network.StreamHandler) { c.handler = f }

// RemoveStreamHandler implements host.Host.
func (c *handlerOf) RemoveStreamHandler(protocol.ID) {}

const (
	maxHop  = 4096             // bytes of a HOP message
	hopTime = 15 * time.Second // until one is complete, and until its answer is taken
)

// handle answers one HOP message.
func (h *hop) handle(s network.Stream) {
	_ = s.SetReadDeadline(time.Now().Add(hopTime)) // a stream that is over fails the read
	said, msg, err := readHop(s)
	if err != nil {
		h.answer(s, pbv2.Status_MALFORMED_MESSAGE)
		return
	}
	_ = s.SetReadDeadline(time.Time{})
	switch msg.GetType() {
	case pbv2.HopMessage_RESERVE:
		h.reserve(s, said)
	case pbv2.HopMessage_CONNECT:
		h.connect(s, said, msg)
	default:
		h.answer(s, pbv2.Status_UNEXPECTED_MESSAGE)
	}
}

// readHop reads a message, and returns also the bytes that it is.
func readHop(r io.Reader) (said []byte, _ *pbv2.HopMessage, err error) {
	kept := &keeper{Reader: r}
	in := util.NewDelimitedReader(kept, maxHop)
	defer in.Close()
	msg := new(pbv2.HopMessage)
	err = in.ReadMsg(msg)
	return kept.said, msg, err
}

// keeper keeps what is read of a message.
type keeper struct {
	io.Reader
	said []byte
}

// Read implements io.Reader.
func (k *keeper) Read(b []byte) (int, error) {
	n, err := k.Reader.Read(b)
	k.said = append(k.said, b[:n]...)
	return n, err
}

// answer answers with a status and nothing else.
func (h *hop) answer(s network.Stream, status pbv2.Status) {
	h.stats.hop(status)
	if err := writeStatus(s, status, nil); err != nil {
		_ = s.Reset()
		return
	}
	_ = s.Close()
}

func writeStatus(s network.Stream, status pbv2.Status, limit *pbv2.Limit) error {
	_ = s.SetWriteDeadline(time.Now().Add(hopTime)) // a stream that is over fails the write
	err := util.NewDelimitedWriter(s).WriteMsg(&pbv2.HopMessage{Type: pbv2.HopMessage_STATUS.Enum(), Status: &status, Limit: limit})
	_ = s.SetWriteDeadline(time.Time{})
	return err
}

// limit is what a circuit is allowed.
func (h *hop) limit() *pbv2.Limit {
	c := &h.cfg.Relay
	return &pbv2.Limit{Duration: proto.Uint32(uint32(c.Duration / time.Second)), Data: proto.Uint64(uint64(c.Data))}
}

// reserve has the library take a reservation, and the cluster know of it.
func (h *hop) reserve(s network.Stream, said []byte) {
	p := s.Conn().RemotePeer()
	ctx, cancel := context.WithTimeout(h.ctx, hopTime)
	defer cancel()
	a, err := h.peers.mayRelay(ctx, p)
	h.conns.heard(ctx, counted(s.Conn()), p, a, err)
	switch {
	case h.library == nil:
		h.answer(s, pbv2.Status_PERMISSION_DENIED)
	case err != nil:
		h.answer(s, statusOf(err))
	case h.drains.Load() || h.cfg.Ready() != nil:
		h.answer(s, pbv2.Status_RESERVATION_REFUSED)
	default:
		h.library(&replayed{Stream: s, of: p, said: said, told: func(answer []byte) { // a peer that hears of its place is to be found at once
			var msg pbv2.HopMessage
			if proto.Unmarshal(answer, &msg) == nil && msg.GetStatus() == pbv2.Status_OK {
				h.reserved.add(p, time.Unix(int64(msg.GetReservation().GetExpire()), 0))
			}
		}})
	}
}

// statusOf returns how a HOP message is answered that was refused with an error.
func statusOf(err error) pbv2.Status {
	switch agora.AsError(err).Code {
	case agora.Unauthorized, agora.Forbidden:
		return pbv2.Status_PERMISSION_DENIED
	case agora.RateLimited:
		return pbv2.Status_RESOURCE_LIMIT_EXCEEDED
	case agora.AgentNotFound:
		return pbv2.Status_NO_RESERVATION
	}
	return pbv2.Status_CONNECTION_FAILED
}

// connect connects a peer with another one.
func (h *hop) connect(s network.Stream, said []byte, msg *pbv2.HopMessage) {
	src := s.Conn().RemotePeer()
	to, err := util.PeerToPeerInfoV2(msg.GetPeer())
	if err != nil {
		h.answer(s, pbv2.Status_MALFORMED_MESSAGE)
		return
	}
	if _, err := s.Conn().RemoteMultiaddr().ValueForProtocol(ma.P_CIRCUIT); err == nil {
		h.answer(s, pbv2.Status_PERMISSION_DENIED)
		return
	}
	ctx, cancel := context.WithTimeout(h.ctx, connectTime)
	defer cancel()
	of, asEdge := sourceOf(msg, src)
	fromEdge := h.relays.isEdge(ctx, src, asEdge)
	if fromEdge {
		counted(s.Conn()).beEdge()
	}
	if h.drains.Load() || h.conns.full() {
		h.answer(s, pbv2.Status_RESOURCE_LIMIT_EXCEEDED)
		return
	}
	ends := []peer.ID{to.ID, src}
	if fromEdge {
		ends = ends[:1] // its callers count there
	}
	if !h.circuits.begin(ends...) {
		h.answer(s, pbv2.Status_RESOURCE_LIMIT_EXCEEDED)
		return
	}
	done := func() { h.circuits.end(ends...) }
	here := h.reserved.has(to.ID)
	switch {
	case !here && !fromEdge && h.own(ctx, s, to.ID):
		done()
	case h.library == nil:
		h.refuse(s, pbv2.Status_NO_RESERVATION, done)
	case fromEdge && here:
		h.here(s, said, of, done)
	case fromEdge:
		h.refuse(s, pbv2.Status_NO_RESERVATION, done)
	default:
		a, err := h.peers.mayConnect(ctx, src, to.ID)
		h.conns.heard(ctx, counted(s.Conn()), src, a, err)
		if err != nil {
			h.refuse(s, statusOf(err), done)
		} else if here {
			h.here(s, said, src, done)
		} else {
			h.across(ctx, s, to.ID)
			done()
		}
	}
}

func (h *hop) refuse(s network.Stream, status pbv2.Status, done func()) {
	done()
	h.answer(s, status)
}

// here has the library connect a peer, src, with one that has reserved a place here. The circuit continues behind it,
// and done is called when it is over.
func (h *hop) here(s network.Stream, said []byte, src peer.ID, done func()) {
	here := &h.stats.Here
	here.Add(1)
	h.library(&replayed{Stream: s, of: src, said: said, closed: func() {
		here.Add(-1)
		done()
	}})
}

// connectTime is how long a circuit may take to be made, or refused.
const connectTime = 20 * time.Second

// across connects a peer with one that has reserved a place at another edge, and returns when the circuit is over.
func (h *hop) across(ctx context.Context, s network.Stream, to peer.ID) {
	out, status := h.dialer.through(ctx, s.Conn().RemotePeer(), to)
	if status != pbv2.Status_OK {
		h.answer(s, status)
		return
	}
	h.stats.hop(status)
	if err := writeStatus(s, status, h.limit()); err != nil {
		_ = out.Reset()
		_ = s.Reset()
		return
	}
	h.stats.Across.Add(1)
	defer h.stats.Across.Add(-1)
	h.circuits.splice(s, out)
}
