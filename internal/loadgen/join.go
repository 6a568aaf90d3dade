package loadgen

import (
	"bytes"
	"context"
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire"
)

// joinTime is how long the cluster may take to answer a peer that joins.
const joinTime = 30 * time.Second

var joinedFrame = []byte(`{"type":"space.joined"`)

// join has the peer join a space, again and again while it is refused for now.
func (p *Peer) join(ctx context.Context, space string) error {
	frame := AppendText(nil, &wire.Frame{Type: "space.join", Space: space})
	var denied string
	for range attempts {
		if err := p.Send(frame); err != nil {
			return unavailable(p.ID+" lost its connection", err)
		}
		var err error
		if denied, err = p.admitted(ctx); denied == "" || err != nil {
			return err
		}
		pause.For(ctx, between)
	}
	return agora.Errorf(agora.Unavailable, "%s can't join: %s", p.ID, denied)
}

// admitted reads until the peer learns that it has joined, or why it has not.
func (p *Peer) admitted(ctx context.Context) (denied string, err error) {
	ctx, cancel := context.WithTimeout(ctx, joinTime)
	defer cancel()
	defer p.Until(ctx)()
	for {
		frame, err := p.Next()
		switch {
		case ctx.Err() != nil:
			return "", agora.Errorf(agora.Timeout, "%s got no answer when it joined", p.ID)
		case err != nil:
			return "", unavailable(p.ID+" lost its connection", err)
		case bytes.HasPrefix(frame, joinedFrame):
			return "", nil
		case bytes.HasPrefix(frame, errorFrame):
			r := refused(frame)
			return fmt.Sprintf("%s (%s)", r.Message, r.Code), nil
		}
	}
}
