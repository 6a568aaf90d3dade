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

// room makes the members of the space, the first of which publish. Of each edge one member's copies
// tell that an event is through.
func (r *Run) room() {
	watched := map[int]bool{}
	for i := range r.cfg.Receivers {
		a := r.add(fmt.Sprintf("%s-m%d", r.name, i), i)
		a.watch = !watched[a.edge]
		watched[a.edge] = true
	}
	data := bytes.Join([][]byte{[]byte(`{"text":`), text(r.cfg.Size), []byte(`}`)}, nil)
	for i := range r.cfg.Senders {
		r.addLine(r.agents[i], "", &wire.Frame{Type: "space.publish", Space: r.name, Data: data}, len(r.agents))
		r.lines[i].gate.signs = int64(len(watched))
	}
}

// joinID is the id of what asks to join.
const joinID = "join"

// joinTime is how long the cluster may take to answer an agent that joins.
const joinTime = 30 * time.Second

// join has all members join the space, as many at a time as connections are opened.
func (r *Run) join(ctx context.Context) error {
	frame := AppendText(nil, &wire.Frame{Type: "space.join", ID: joinID, Space: r.name})
	return each(r.agents, func(a *agent) error {
		for range attempts {
			if err := a.conn.Write(frame); err != nil {
				return unavailable(a.id+" lost its connection", err)
			}
			if in, err := a.answered(ctx); in || err != nil {
				return err
			}
			pause.For(ctx, between) // it was refused for now
		}
		return agora.Errorf(agora.Unavailable, "%s can't join: %s", a.id, r.notes.words())
	})
}

// answered waits until the agent is told whether it has joined.
func (a *agent) answered(ctx context.Context) (in bool, err error) {
	late := time.NewTimer(joinTime)
	defer late.Stop()
	select {
	case in = <-a.joined:
		return in, nil
	case <-late.C:
		return false, agora.Errorf(agora.Timeout, "%s got no answer when it joined", a.id)
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
