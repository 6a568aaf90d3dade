package p2p

import (
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	pbv2 "github.com/libp2p/go-libp2p/p2p/protocol/circuitv2/pb"
	"google.golang.org/protobuf/encoding/protowire"
)

// sourceField is the field of a HOP message by which an edge tells another one for whom it asks: to the peer at the
// other end the circuit is that peer's, and there are peers that hang up on any other one. Who is no edge is not
// believed.
const sourceField = 1000

// setSource has a message say for whom it asks.
func setSource(msg *pbv2.HopMessage, src peer.ID) {
	b := protowire.AppendTag(nil, sourceField, protowire.BytesType)
	msg.ProtoReflect().SetUnknown(protowire.AppendString(b, string(src)))
}

// sourceOf returns for whom a message says that it asks; whose it is and false where it says nothing of that.
func sourceOf(msg *pbv2.HopMessage, whose peer.ID) (peer.ID, bool) {
	for b := []byte(msg.ProtoReflect().GetUnknown()); len(b) > 0; {
		field, kind, tag := protowire.ConsumeTag(b)
		if tag < 0 {
			break
		}
		n := protowire.ConsumeFieldValue(field, kind, b[tag:])
		if n < 0 {
			break
		}
		if field == sourceField && kind == protowire.BytesType {
			value, _ := protowire.ConsumeBytes(b[tag:])
			if id, err := peer.IDFromBytes(value); err == nil {
				return id, true
			}
		}
		b = b[tag+n:]
	}
	return whose, false
}

// connOf is a connection as if it were another peer's.
type connOf struct {
	network.Conn
	remote peer.ID
}

// RemotePeer implements network.ConnSecurity.
func (c connOf) RemotePeer() peer.ID { return c.remote }
