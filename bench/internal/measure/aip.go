package measure

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/agora-relay/agora/bench/internal/aip"
	"github.com/agora-relay/agora/internal/loadgen"
)

// Called is a running system whose agent and toolbox are called by AIP.
type Called interface {
	loadgen.Watched
	// AIP connects a client to one of its servers, counted from 0 and beyond their number round again; ErrNone where
	// nobody is called by AIP.
	AIP(server int) (*aip.Client, error)
	// ServerRSS tells the memory of a server, in bytes.
	ServerRSS(server int) int64
}

// programs connects programs of AIP, each to another server than the one before; the first is not at the server that
// nodes have registered with. The caller calls end in any case.
func programs(t Called, n int) (all []*aip.Client, end func(), err error) {
	end = func() {
		for _, a := range all {
			_ = a.Close() // nothing is under way
		}
	}
	for i := range n {
		a, err := t.AIP(i + 1)
		if err != nil {
			return nil, end, err
		}
		all = append(all, a)
	}
	return all, end, nil
}

// Tools has programs call a tool again as soon as it has answered, each so many times at once. Rates count answers, and
// their delay is from call to answer.
func Tools(ctx context.Context, t Called, name string, n, each int, cfg Config) (Result, error) {
	all, end, err := programs(t, n)
	defer end()
	if err != nil {
		return Result{}, err
	}
	c := &calls{target: t, cfg: cfg}
	arguments := string(loadgen.Text(cfg.Size))
	for k := range n * each {
		from := fmt.Sprintf("%sc%d", name, k)
		c.all = append(c.all, func(ctx context.Context) error { return all[k%n].CallTool(ctx, from, arguments) })
	}
	return c.run(ctx)
}

// Talk is what sessions are like.
type Talk struct {
	Programs, Each int // programs, and sessions of each
	Size           int // bytes of a message
}

// Sessions has programs say in sessions what flow control lets them, and hear the same again. Rates count what was
// heard.
func Sessions(ctx context.Context, t Called, name string, talk Talk, cfg Config) (Result, error) {
	all, end, err := programs(t, talk.Programs)
	defer end()
	if err != nil {
		return Result{}, err
	}
	c := &calls{target: t, cfg: cfg}
	stop := make(chan struct{})
	var talks []*talking
	for k := range talk.Programs * talk.Each {
		id := fmt.Sprintf("%ss%d", name, k)
		s, err := all[k%talk.Programs].Open(ctx, id)
		if err != nil {
			return Result{}, err
		}
		talks = append(talks, &talking{calls: c, id: id, s: s, content: loadgen.Text(talk.Size), heard: make(chan struct{})})
	}
	var talkers sync.WaitGroup
	for _, x := range talks {
		talkers.Go(func() { x.say(stop) })
		talkers.Go(x.hear)
	}
	r, err := c.measure(ctx)
	close(stop)
	talkers.Wait()
	for _, x := range talks {
		r.Sent += x.said
	}
	r.Lost = r.Sent - c.answers.Load()
	c.finish(&r)
	return r, err
}

// talking is one session.
type talking struct {
	*calls
	id      string
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
				x.refused(fmt.Sprintf("%s stopped: %v", x.id, err))
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
			x.refused(fmt.Sprintf("%s heard: %v", x.id, err))
			return
		case len(m.Content) != len(x.content):
			x.refused(fmt.Sprintf("%s heard %d bytes", x.id, len(m.Content)))
			return
		}
		x.answers.Add(1)
	}
}
