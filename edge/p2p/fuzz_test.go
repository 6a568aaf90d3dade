package p2p

import (
	"bytes"
	"testing"

	"github.com/libp2p/go-libp2p/core/peer"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/util"
)

// FuzzHop reads what a peer may say to a relay: no more of it is taken than one message is, and that is said again as
// it came.
func FuzzHop(f *testing.F) {
	for _, m := range []*pbv2.HopMessage{
		{Type: pbv2.HopMessage_RESERVE.Enum()},
		{Type: pbv2.HopMessage_CONNECT.Enum(), Peer: util.PeerInfoToPeerV2(peer.AddrInfo{ID: "12345"})},
		{Type: pbv2.HopMessage_STATUS.Enum(), Status: pbv2.Status_OK.Enum()},
	} {
		var b bytes.Buffer
		if err := util.NewDelimitedWriter(&b).WriteMsg(m); err != nil {
			f.Fatal(err)
		}
		f.Add(b.Bytes(), []byte("and more"))
	}
	f.Add([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 1}, []byte{})
	f.Fuzz(func(t *testing.T, said, more []byte) {
		r := bytes.NewReader(append(bytes.Clone(said), more...))
		got, msg, err := readHop(r)
		if len(got) > maxHop+10 {
			t.Errorf("%d bytes were read", len(got))
		}
		if err != nil {
			return
		}
		if rest := r.Len(); len(got)+rest != len(said)+len(more) || !bytes.HasPrefix(append(bytes.Clone(said), more...), got) {
			t.Errorf("%q was kept of %q, with %d left", got, said, rest)
		}
		if _, err := util.PeerToPeerInfoV2(msg.GetPeer()); err == nil && msg.GetPeer() == nil {
			t.Error("a peer that is none is one")
		}
		if b, whole := unframed(got); !whole || len(b) > maxHop {
			t.Errorf("the message is %d bytes, %v", len(b), whole)
		}
	})
}
