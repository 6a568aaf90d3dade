package sidecar

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
)

// spaces are those that the agent has joined: what happens in each is posted to the agent in order.
type spaces struct {
	*delivery
	client    *client.Client
	ctx, work context.Context // in which nothing new is begun, and that ends what is in progress
	readers   sync.WaitGroup

	mu sync.Mutex // guards the field below
	in map[string]*client.Space
}

func (p *spaces) open(ctx, work context.Context) {
	p.ctx, p.work, p.in = ctx, work, map[string]*client.Space{}
}

// wait returns when nothing is posted any more. It goes behind the end of the client.
func (p *spaces) wait() {
	p.mu.Lock() // a join that is under way adds its reader before, or none
	p.in = nil
	p.mu.Unlock()
	p.readers.Wait()
}

// join makes the agent a member of a space, and has its events posted.
func (p *spaces) join(ctx context.Context, name string, history int) (*client.Space, error) {
	if p.url == nil {
		return nil, agora.Errorf(agora.InvalidRequest, "there is no path to post events to: set one")
	}
	var options []client.JoinOptions
	if history > 0 {
		options = append(options, client.JoinOptions{History: history})
	}
	space, err := p.client.Join(ctx, name, options...)
	if err != nil {
		return nil, err
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in == nil {
		return nil, client.ErrClosed
	}
	if p.in[name] != space {
		p.in[name] = space
		p.readers.Go(func() { p.read(space) })
	}
	return space, nil
}

// joined returns a space that the agent is in. FORBIDDEN where it is not, as edges have it.
func (p *spaces) joined(name string) (*client.Space, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if space := p.in[name]; space != nil {
		return space, nil
	}
	return nil, agora.Errorf(agora.Forbidden, "the agent has not joined space '%s'", name)
}

func (p *spaces) leave(ctx context.Context, name string) error {
	space, err := p.joined(name)
	if err != nil {
		return err
	}
	if err := space.Leave(ctx); err != nil {
		return err
	}
	p.forget(space)
	return nil
}

func (p *spaces) forget(space *client.Space) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.in[space.Name()] == space {
		delete(p.in, space.Name())
	}
}

// read posts what happens in a space until the agent has left it, or the sidecar ends.
func (p *spaces) read(space *client.Space) {
	defer p.forget(space)
	for e, err := range space.Events(p.ctx) {
		if err != nil {
			if p.ctx.Err() == nil && !errors.Is(err, client.ErrLeft) {
				p.log.Warn("events of a space come no more", "space", space.Name(), "err", err)
			}
			return
		}
		if !p.postEvent(p.ctx, p.work, e) {
			return
		}
	}
}

// rosterBody is a change of a space's members as it is posted.
type rosterBody struct {
	Members []string `json:"members,omitempty"`
	Joined  string   `json:"joined,omitempty"`
	Left    string   `json:"left,omitempty"`
}

// postEvent posts an event until the agent takes it, or Limits.Keep is over. It returns false where the sidecar has
// ended.
func (d *delivery) postEvent(ctx, work context.Context, e *client.Event) bool {
	defer e.Close()
	q := question{method: http.MethodPost, url: d.url, within: d.limits.Deliver, header: http.Header{
		"Content-Type": {"application/json"}, headerSpace: {oneLine(e.Space)}, headerKind: {"event"},
	}}
	var err error
	if e.Roster != nil {
		q.header.Set(headerKind, "roster")
		q.body, err = json.Marshal(rosterBody(*e.Roster))
	} else {
		q.header.Set(headerFrom, oneLine(e.From))
		q.body, err = e.Whole(ctx)
	}
	if err != nil {
		d.log.Debug("an event has no end", "space", e.Space, "err", err)
		return ctx.Err() == nil
	}
	if e.Seq > 0 {
		q.header.Set(headerSeq, strconv.FormatUint(e.Seq, 10))
	}
	if e.Traceparent != "" {
		q.header.Set("Traceparent", oneLine(e.Traceparent))
	}
	for n, begun := 1, time.Now(); ctx.Err() == nil; n++ {
		if e.Redelivered || n > 1 {
			q.header.Set(headerRedelivered, "true")
		}
		x, err := d.agent.put(work, q)
		if err == nil {
			x.Close()
			d.stats.delivered.Add(1)
			return true
		}
		if !comesBack(err) || time.Since(begun) > d.limits.Keep {
			d.stats.dropped.Add(1)
			d.log.Warn("an event is dropped that the agent does not take", "space", e.Space, "seq", e.Seq, "err", err)
			return work.Err() == nil
		}
		pause.For(ctx, d.limits.after(n))
	}
	return false
}
