package load

import (
	"bytes"
	"context"
	"fmt"
	"time"

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

// join has all members join the space, and waits until they are in it.
func (r *Run) join(ctx context.Context) error {
	frame := AppendText(nil, &wire.Frame{Type: "space.join", ID: "join", Space: r.name})
	err := each(r.agents, func(a *agent) error {
		if err := a.conn.Write(frame); err != nil {
			return unavailable(a.id+" lost its connection", err)
		}
		return nil
	})
	if err != nil {
		return err
	}
	for int(r.joined.Load()) < len(r.agents) && ctx.Err() == nil {
		wait(ctx, 10*time.Millisecond)
	}
	return ctx.Err()
}
