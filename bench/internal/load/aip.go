package load

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/agora-relay/agora/bench/internal/aip"
)

// Called is a running system whose agent and toolbox are called by AIP.
type Called interface {
	Target
	// AIP connects a client to one of its servers, counted from 0 and beyond their number round again; wire.ErrNone where nobody is called by AIP.
	AIP(server int) (*aip.Client, error)
	// ServerRSS tells the memory of a server, in bytes.
	ServerRSS(server int) int64
}

// program is a program of AIP, as a member of a crew that closes it.
type program struct {
	Agent // none
	*aip.Client
}

// Close implements Agent.
func (p program) Close() error { return p.Client.Close() }

// programs connects programs of AIP, each to another server than the one before; the first is not at the server that nodes have registered with.
func (c *crew) programs(t Called, n int) ([]*aip.Client, error) {
	all := make([]*aip.Client, n)
	for i := range all {
		a, err := t.AIP(i + 1)
		if err != nil {
			return nil, err
		}
		all[i] = a
		c.members = append(c.members, &member{Agent: program{Client: a}, id: c.name + "p" + strconv.Itoa(i)})
	}
	return all, nil
}

// Tools has programs call a tool again as soon as it has answered, each so many times at once. Rates count answers, and their delay is from call to answer.
func Tools(ctx context.Context, t Called, name string, programs, each int, cfg Config) (Result, error) {
	c := &crew{target: t, name: name, cfg: cfg}
	defer c.close()
	all, err := c.programs(t, programs)
	if err != nil {
		return Result{}, err
	}
	now := time.Now()
	c.from.Store(now.Add(cfg.Warm).UnixNano())
	c.until.Store(now.Add(cfg.Warm + cfg.Time).UnixNano())
	calling, stop := context.WithCancel(ctx)
	defer stop()
	for k := range programs * each {
		m := &member{Agent: program{Client: all[k%programs]}, id: fmt.Sprintf("%sc%d", name, k)}
		c.members = append(c.members, m)
		c.write(func() { c.callTools(calling, all[k%programs], m) })
	}
	r, err := c.measure(ctx, 0)
	stop()
	c.writers.Wait()
	r.Sent = c.arrivals()
	c.finish(&r)
	return r, err
}

// callTools has a member call until it is told to stop, or is refused.
func (c *crew) callTools(ctx context.Context, a *aip.Client, m *member) {
	arguments := string(newText(c.cfg.Size))
	for {
		began := time.Now().UnixNano()
		if err := a.CallTool(ctx, m.id, arguments); err != nil {
			if ctx.Err() == nil {
				c.refused(fmt.Sprintf("%s called: %v", m.id, err))
			}
			return
		}
		m.got.Add(1)
		c.timed(m, began)
	}
}

// Talk is what sessions are like.
type Talk struct {
	Programs, Each int // programs, and sessions of each
	Size           int // bytes of a message
}

// Sessions has programs say in sessions what flow control lets them, and hear the same again. Rates count what was heard.
func Sessions(ctx context.Context, t Called, name string, talk Talk, cfg Config) (Result, error) {
	c := &crew{target: t, name: name, cfg: cfg}
	defer c.close()
	all, err := c.programs(t, talk.Programs)
	if err != nil {
		return Result{}, err
	}
	stop := make(chan struct{})
	var talks []*talking
	for k := range talk.Programs * talk.Each {
		m := &member{Agent: program{Client: all[k%talk.Programs]}, id: fmt.Sprintf("%ss%d", name, k)}
		c.members = append(c.members, m)
		s, err := all[k%talk.Programs].Open(ctx, m.id)
		if err != nil {
			close(stop)
			return Result{}, err
		}
		talks = append(talks, &talking{crew: c, m: m, s: s, content: newText(talk.Size), heard: make(chan struct{})})
	}
	for _, x := range talks {
		c.write(func() { x.say(stop) })
		c.readers.Go(x.hear)
	}
	r, err := c.measure(ctx, 0)
	close(stop)
	c.writers.Wait()
	for _, x := range talks {
		r.Sent += x.said
		r.Lost += x.said - x.m.got.Load()
	}
	c.finish(&r)
	return r, err
}

// talking is one session.
type talking struct {
	*crew
	m       *member
	s       *aip.Session
	content []byte
	said    int64         // by say
	heard   chan struct{} // closed once nothing is heard any more
}

// say sends messages until it is told to stop, and returns once the session is over.
func (x *talking) say(stop <-chan struct{}) {
	kind := aip.Text
	if len(x.content) > 64<<10 {
		kind = aip.Image
	}
	err := x.s.Send(aip.Start, kind, x.content)
	for err == nil {
		x.said++
		select {
		case <-stop:
			err = x.s.Send(aip.Stop, kind, nil)
			<-x.heard
			if err != nil {
				x.refused(fmt.Sprintf("%s stopped: %v", x.m.id, err))
			}
			return
		default:
		}
		err = x.s.Send(aip.Hold, kind, x.content)
	}
	<-x.heard // says why
}

// hear counts what comes, until the session is over.
func (x *talking) hear() {
	defer close(x.heard)
	for {
		m, err := x.s.Receive()
		switch {
		case err == nil && m.Status == aip.StopResponse:
			continue
		case errors.Is(err, io.EOF):
			return
		case err != nil:
			x.crew.refused(fmt.Sprintf("%s heard: %v", x.m.id, err))
			return
		case len(m.Content) != len(x.content):
			x.crew.refused(fmt.Sprintf("%s heard %d bytes", x.m.id, len(m.Content)))
			return
		}
		x.m.got.Add(1)
	}
}
