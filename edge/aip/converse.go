package aip

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/wire/aip"
)

// converse serves a session with an agent of another dialect: what the caller says is a stream into the agent's
// mailbox, and the agent's reply is found in the box of a call.
func (r *router) converse(s grpc.ServerStream, o *opening) error {
	quests := new(aip.QuestReader)
	parts, err := quests.Read(o.first.Bytes())
	if err != nil {
		return err
	}
	quests.As = string(o.as)
	start := parts[0]
	start.ID, start.Meta.Trace, start.Meta.Deadline = quests.Session(), o.trace, r.clusterTime(o.deadline)
	answer, err := o.actor.Call(s.Context(), o.as, call.Request{Message: start, Streams: true})
	if err != nil {
		return err
	}
	c := &conversation{router: r, s: s, o: o, quests: quests, answer: answer, stopped: make(chan struct{}), read: make(chan struct{})}
	defer c.leave()
	ctx, cancel := context.WithCancelCause(s.Context())
	defer cancel(nil)
	r.work.Go(func() { // ends with the handler, whose return ends what it reads
		if err := c.sendAll(ctx, parts[1:]); err != nil {
			cancel(err)
		}
	})
	err = c.respondAll(ctx)
	if why := cause(ctx); err != nil && why != nil {
		err = why
	}
	if err != nil && s.Context().Err() == nil {
		_ = c.send(c.responses().Fail(statusOf(err).Message())) // the status says the same
	}
	return err
}

// conversation is a session between a caller and an agent of another dialect.
type conversation struct {
	router  *router
	s       grpc.ServerStream
	o       *opening
	quests  *aip.QuestReader
	answer  *call.Answer
	stops   atomic.Bool   // the caller has said its last word
	stopped chan struct{} // closed once that is stored
	read    chan struct{} // closed once nothing more is read of the answer
	writer  *aip.ResponseWriter
}

// leave says that the caller waits no more. Where that is because its time is over, the agent is told so: the call ends
// with its deadline, which is about to pass.
func (c *conversation) leave() {
	if c.s.Context().Err() == nil || c.o.deadline.IsZero() || time.Until(c.o.deadline) > lastMoment {
		c.answer.Close()
		return
	}
	c.router.work.Go(func() {
		defer c.answer.Close()
		<-c.read
		for {
			if _, err := c.answer.Next(c.router.ctx); err != nil {
				return
			}
		}
	})
}

func (c *conversation) responses() *aip.ResponseWriter {
	if c.writer == nil {
		c.writer = aip.NewResponseWriter(c.o.named.Receiver, c.o.named.Sender, c.quests.Session(), c.router.cfg.MaxMessage)
	}
	return c.writer
}

// lastMoment is how long before its deadline a caller that goes is taken for one whose time is over: its own timer has
// it reset the call before ours ends that.
const lastMoment = 100 * time.Millisecond

// sendAll stores what the caller says, one part behind the other. It returns what the caller did wrong, or why that
// can't be stored.
func (c *conversation) sendAll(ctx context.Context, parts []agora.Message) error {
	for f := new(aip.Frame); ; {
		c.stops.Store(c.quests.Stopped())
		for _, m := range parts {
			if err := c.answer.Say(ctx, m); err != nil {
				return err
			}
		}
		f.Free()
		if c.quests.Stopped() {
			close(c.stopped)
			return nil
		}
		err := c.s.RecvMsg(f)
		if errors.Is(err, io.EOF) { // who says no more has stopped
			c.stops.Store(true)
			if err := c.answer.Say(ctx, agora.Message{Part: agora.End}); err != nil {
				return err
			}
			close(c.stopped)
			return nil
		}
		if err != nil {
			return onlyWrong(err)
		}
		c.router.stats.In.Add(int64(f.Len()))
		c.router.lives(c.o)
		if parts, err = c.quests.Read(f.Bytes()); err != nil {
			f.Free()
			return err
		}
	}
}

// part is one part of the agent's reply, or why none comes.
type part struct {
	agora.Message
	err error
}

// respondAll sends the caller what the agent replies, until the session is over.
func (c *conversation) respondAll(ctx context.Context) (err error) {
	parts := make(chan *part)
	c.router.work.Go(func() { c.readAll(ctx, parts) })
	var late <-chan time.Time // the caller has stopped, and nobody has answered
	for stopped := c.stopped; !c.responses().Over(); {
		var p *part
		select {
		case p = <-parts:
		case <-stopped:
		case <-late:
			return c.send(c.responses().End())
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if stopped != nil && c.stops.Load() { // which may be what the agent replies to
			stopped = nil
			if late, err = c.stop(ctx); err != nil {
				return err
			}
		}
		switch {
		case p == nil || c.responses().Over():
		case errors.Is(p.err, io.EOF): // nothing comes behind a reply
			parts = nil
		default:
			if err := c.respond(p); err != nil {
				return err
			}
		}
	}
	return nil
}

// stop has the caller know that it has stopped, once that is stored. late tells when nobody answers any more, where
// nothing has come by which the session would end.
func (c *conversation) stop(ctx context.Context) (late <-chan time.Time, err error) {
	select {
	case <-c.stopped:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if err := c.send(c.responses().Stop()); err != nil || !c.responses().Waits() {
		return nil, err
	}
	return time.After(c.router.cfg.StopWait), nil
}

// respond sends the caller a part of the reply. It returns the error that comes in place of one.
func (c *conversation) respond(p *part) error {
	if p.err != nil {
		return p.err
	}
	all, err := c.responses().Write(&p.Message)
	if err != nil {
		return err
	}
	return c.send(all)
}

// readAll reads the agent's reply, until it has come to an end or ctx is over.
func (c *conversation) readAll(ctx context.Context, parts chan<- *part) {
	defer close(c.read)
	for {
		m, err := c.answer.Next(ctx)
		select {
		case parts <- &part{m, err}:
		case <-ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// send sends the caller responses.
func (c *conversation) send(all [][]byte) error {
	for _, b := range all {
		c.router.stats.Out.Add(int64(len(b)))
		if err := c.s.SendMsg(aip.NewFrame(b)); err != nil {
			return err
		}
	}
	return nil
}

// clusterTime returns a time of this machine's clock by the cluster's; zero for zero.
func (r *router) clusterTime(t time.Time) time.Time {
	if t.IsZero() {
		return t
	}
	return r.node.Config().Broker.Now().Add(time.Until(t))
}
