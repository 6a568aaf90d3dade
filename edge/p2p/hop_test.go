package p2p_test

import (
	"bytes"
	"io"
	"testing"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/proto"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
	"google.golang.org/protobuf/encoding/protowire"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const echo = protocol.ID("/echo/1.0.0")

// echoes has a peer say again what it is said, until the end of that.
func (h *host) echoes() {
	h.SetStreamHandler(echo, func(s network.Stream) {
		if _, err := io.Copy(s, s); err != nil {
			_ = s.Reset()
			return
		}
		_ = s.Close()
	})
}

// said says something to who echoes, and returns what comes back.
func said(t *testing.T, s network.Stream, what []byte) []byte {
	t.Helper()
	go func() {
		if _, err := s.Write(what); err == nil {
			_ = s.CloseWrite()
		}
	}()
	got, err := io.ReadAll(s)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func TestAPeerIsReachedThroughEveryEdgeWhereverItHasReserved(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 3}})
	to := s.enter()
	to.echoes()
	to.reserve(0)
	what := bytes.Repeat([]byte("0123456789abcdef"), 64<<10)
	for k := range 3 {
		from := s.enter()
		st, err := from.opens(k, to.ID(), echo)
		if err != nil {
			t.Fatalf("through edge %d: %v", k, err)
		}
		if got := said(t, st, what); !bytes.Equal(got, what) {
			t.Errorf("through edge %d come %d bytes, want %d", k, len(got), len(what))
		}
		_ = from.Close()
	}
}

// callers has a peer refuse circuits, and returns what it learns of whose they are.
func (h *host) callers() <-chan peer.ID {
	of := make(chan peer.ID, 1)
	h.SetStreamHandler(proto.ProtoIDv2Stop, func(s network.Stream) {
		defer s.Reset()
		in := util.NewDelimitedReader(s, 4096)
		defer in.Close()
		var msg pbv2.StopMessage
		if in.ReadMsg(&msg) == nil {
			of <- peer.ID(msg.GetPeer().GetId())
		}
	})
	return of
}

func TestAPeerIsToldWhoseCircuitsAreAlsoOfThoseThroughAnotherEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	to := s.enter()
	of := to.callers()
	to.reserve(0)
	for k := range 2 {
		from := s.enter()
		if _, err := from.opens(k, to.ID(), echo); err == nil {
			t.Errorf("through edge %d comes a circuit that was refused", k)
		}
		if got := await.Recv(t, "the peer is asked", of); got != from.ID() {
			t.Errorf("through edge %d the circuit is %v's, want %v", k, got, from.ID())
		}
	}
}

func TestAPeerThatIsNoEdgeAsksForNobodyElse(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	to, liar := s.enter(), s.enter()
	of := to.callers()
	to.reserve(0)
	msg := &pbv2.HopMessage{Type: pbv2.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: to.ID()})}
	b := protowire.AppendTag(nil, 1000, protowire.BytesType)
	msg.ProtoReflect().SetUnknown(protowire.AppendString(b, string(s.enter().ID())))
	if err := util.NewDelimitedWriter(liar.edge(0, proto.ProtoIDv2Hop)).WriteMsg(msg); err != nil {
		t.Fatal(err)
	}
	if got := await.Recv(t, "the peer is asked", of); got != liar.ID() {
		t.Errorf("the circuit is %v's, want %v", got, liar.ID())
	}
}
