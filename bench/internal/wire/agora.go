package wire

import (
	"bytes"
	"context"
	"fmt"
	"strconv"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// Agora is an agent's connection to an Agora edge, which can ask and answer besides.
type Agora struct {
	*loadgen.Peer
	asked uint64 // how often it has asked
}

// ackEvery is how many messages an agent takes before it says that it has them.
const ackEvery = 64

// DialAgora connects an agent to the edge at addr. It acknowledges what is sent to itself.
func DialAgora(ctx context.Context, r loadgen.Role, addr, id, token string) (*Agora, error) {
	s := loadgen.Agora{Edges: []string{"ws://" + addr}, Access: loadgen.Access{Token: token}}
	if r != loadgen.Member {
		s.Acks.Batch = ackEvery
	}
	p, err := s.Peer(ctx, r, id, 0)
	if err != nil {
		return nil, err
	}
	return &Agora{Peer: p}, nil
}

// Resume connects the agent again after its connection was lost, and continues with its session after what it received
// last.
func (a *Agora) Resume(ctx context.Context, addr string) (*Agora, error) {
	p, err := a.Peer.Resume(ctx, "ws://"+addr)
	if err != nil {
		return nil, err
	}
	return &Agora{Peer: p}, nil
}

// Ask asks another agent, and returns when its reply has come. Receive is not called meanwhile.
func (a *Agora) Ask(to string, text []byte) error {
	a.asked++
	id := strconv.FormatUint(a.asked, 10)
	if err := a.Send(socket.AppendText(nil, `{"type":"send","to":"`+to+`","payload":{"request_id":"`+id+`","text":"`, string(text), `"}}`)); err != nil {
		return err
	}
	for {
		frame, err := a.Next()
		switch {
		case err != nil:
			return err
		case bytes.HasPrefix(frame, []byte(`{"type":"error"`)):
			return fmt.Errorf("the edge says %s", frame)
		case !bytes.HasPrefix(frame, []byte(`{"type":"reply"`)):
			continue
		}
		if of, _ := cut(frame, `"request_id":"`); string(of) == id {
			return answered(frame, text)
		}
	}
}

// Echo replies to those that ask until the connection ends.
func (a *Agora) Echo() error {
	for {
		frame, err := a.Next()
		if err != nil {
			return err
		}
		text, ok := cut(frame, `"text":"`)
		if !ok {
			continue
		}
		from, _ := cut(frame, `"from":"`)
		id, _ := cut(frame, `"request_id":"`)
		reply := socket.AppendText(nil, `{"type":"reply","to":"`+string(from)+`","payload":{"request_id":"`+string(id)+`","text":"`, string(text), `"}}`)
		if err := a.Send(reply); err != nil {
			return err
		}
	}
}
