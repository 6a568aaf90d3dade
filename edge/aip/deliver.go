package aip

import (
	"cmp"
	"context"
	"errors"
	"io"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/aip"
)

// What comes into a node's mailbox, from agents of other dialects and of callers at other edges, is put to the node by
// a call for each stream, and for each message that is no stream. What the node responds is the reply.

// serve puts one exchange of the mailbox to the node.
func (n *node) serve(x *demux.Exchange) {
	first, err := x.Next(x.Context())
	if err != nil || first.Part > agora.Start || first.Kind == agora.Control {
		return // what it began with was read by an earlier holder: the peer learns that nobody continues with it
	}
	r := &request{node: n, x: x, name: requestName(&first.Message), mute: first.Kind == agora.Reply}
	if r.name != x.Stream() {
		x.Bind(r.name)
	}
	reader := &aip.ResponseReader{To: x.Peer(), Request: r.name}
	switch {
	case first.Redelivered:
		r.fail(reader, errMayHave)
	case n.toolbox:
		r.callTool(reader, &first)
	default:
		r.callAgent(reader, &first)
	}
}

// errMayHave is the error of a request that the node may have had already: nobody does it twice.
var errMayHave = agora.Errorf(agora.StreamAborted, "the edge of the node was lost, and the node may have had this before")

// requestName is what a request is called: by its sender, or else by its place in the log.
func requestName(m *agora.Message) string {
	name := cmp.Or(m.Meta.Request, m.Stream)
	switch {
	case m.Kind == agora.Reply:
		name = cmp.Or(m.Meta.Parent, m.Stream)
	case m.Meta.Request == "" && m.Media == "" && wire.RequestIDOf(m.Body) != "":
		name = wire.RequestIDOf(m.Body)
	case name == "" && m.Meta.Call != "":
		name = m.ClientID()
	}
	return cmp.Or(name, "agora-"+strconv.FormatUint(m.Seq, 10))
}

// request is a message or a stream of the mailbox on its way to the node.
type request struct {
	node *node
	x    *demux.Exchange
	name string        // what it is called
	mute bool          // it is itself an answer: the node's is for nobody
	sent *statusOrigin // whether the status of the call is the node's own word
	late bool          // its deadline has passed here

	hangUp context.CancelFunc // ends the call
}

// context returns the context of the call by which the request is put to the node: it ends with the request, and at its
// deadline.
func (r *request) context(first *demux.Part) (context.Context, context.CancelFunc) {
	var ctx context.Context
	ctx, r.sent = observed(outgoing(r.x.Context(), first.Meta.Trace))
	if r.node.via != nil {
		ctx = r.node.registry.over(ctx, nil)
	}
	if first.DeadlineMS > 0 {
		return context.WithTimeout(ctx, time.Duration(first.DeadlineMS)*time.Millisecond)
	}
	return context.WithCancel(ctx)
}

// callAgent puts the request to an agent, and replies by what that responds.
func (r *request) callAgent(reader *aip.ResponseReader, first *demux.Part) {
	ctx, cancel := r.context(first)
	defer cancel()
	r.hangUp = cancel
	out, err := r.node.channel.NewStream(ctx, &callAgent, sessionMethod(r.node.via != nil))
	own := false // the error is not the agent's
	if err == nil {
		sent := make(chan error, 1)
		r.node.registry.work.Go(func() {
			err := r.sendAll(ctx, out, first)
			if ctx.Err() != nil {
				err = nil // it is over, and this is what follows
			} else if err != nil {
				cancel()
			}
			sent <- err
		})
		err = r.receiveAll(ctx, out, reader)
		cancel() // what is still sent is for nobody
		if e := <-sent; e != nil {
			own, err = true, e
		}
	}
	if err != nil {
		r.late = isLate(ctx, err)
		r.fail(reader, err)
	}
	if !own {
		r.judged(err)
	}
	if r.late && first.Part == agora.Start {
		<-r.x.Context().Done() // the cluster gives the stream up for both sides
	}
}

// isLate reports whether a call has ended as its deadline has passed: who is called may see that first.
func isLate(ctx context.Context, err error) bool {
	end, has := ctx.Deadline()
	return errors.Is(ctx.Err(), context.DeadlineExceeded) || has && status.Code(err) == codes.DeadlineExceeded && time.Until(end) < lastMoment
}

// sendAll puts the parts of the request to the agent. It returns why the request did not come to its end.
func (r *request) sendAll(ctx context.Context, out grpc.ClientStream, part *demux.Part) error {
	w := aip.NewQuestWriter(&part.Message, r.node.at.Agent, r.name, r.node.registry.cfg.MaxMessage)
	for {
		quests, err := w.Write(&part.Message)
		if err != nil {
			return err
		}
		for _, q := range quests {
			r.node.registry.stats.Out.Add(int64(len(q)))
			if err := out.SendMsg(aip.NewFrame(q)); err != nil {
				return nil // the agent has ended the call, and says why
			}
		}
		next, err := r.x.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out.CloseSend()
		}
		if err != nil {
			return err
		}
		part = &next
	}
}

// receiveAll replies by what the agent responds, until the call is over. Its last word is said once the call has ended
// well, or continues for longer than an agent may take to end it: of a call that fails behind it the reply is aborted.
func (r *request) receiveAll(ctx context.Context, out grpc.ClientStream, reader *aip.ResponseReader) error {
	for {
		f := new(aip.Frame)
		if err := out.RecvMsg(f); errors.Is(err, io.EOF) {
			return r.say(ctx, reader.End())
		} else if err != nil {
			return err
		}
		r.node.registry.stats.In.Add(int64(f.Len()))
		e, err := aip.ReadEnvelope(f.Bytes())
		if err == nil && e.Status == aip.AgentMessage_STOP_RESPONSE {
			if err = r.ends(out); err != nil {
				f.Free()
				return err
			}
			ctx = r.x.Context() // the call's own may be over
		}
		parts, err := reader.Read(f.Bytes())
		if err == nil {
			err = r.say(ctx, parts)
		}
		f.Free()
		if err != nil || reader.Over() {
			return err
		}
	}
}

// ends waits until the agent has ended the call in which it has said its last word, but not for long, and returns the
// status where that is a bad one.
func (r *request) ends(out grpc.ClientStream) error {
	var late atomic.Bool
	defer time.AfterFunc(stopLinger, func() {
		late.Store(true)
		r.hangUp()
	}).Stop()
	more := new(aip.Frame)
	defer more.Free()
	err := out.RecvMsg(more)
	if err == nil || errors.Is(err, io.EOF) || late.Load() {
		return nil // what it says behind its last word is for nobody
	}
	return err
}

// say says parts of the reply, whose bodies may be slices of what is reused: the session keeps its own.
func (r *request) say(ctx context.Context, parts []agora.Message) error {
	if r.mute {
		return nil
	}
	for _, m := range parts {
		m.Body = slices.Clone(m.Body)
		if err := r.node.session.Do(ctx, &edge.Command{Verb: edge.Send, Message: m}); err != nil {
			return err
		}
	}
	return nil
}

// fail tells who has asked that the call of the node has failed, unless it was given up by who has asked. That a
// deadline has passed the cluster tells, but of a reply that has begun.
func (r *request) fail(reader *aip.ResponseReader, err error) {
	why := context.Cause(r.x.Context())
	if r.mute || errors.Is(why, demux.ErrCancelled) {
		return
	}
	code := agora.StreamAborted
	if aip.FromCode(statusOf(err).Code()) == agora.Timeout {
		code = agora.Timeout
	}
	m, ok := reader.Fail(code)
	if !ok || m.Stream == "" && (r.late || why != nil && agora.AsError(why).Code == agora.Timeout) {
		return
	}
	if m.Stream == "" && r.sent.Load() && statusOf(err).Code() == codes.Canceled && r.x.Close() {
		return // the node has cancelled a stream: that is what its peer is told
	}
	parts := []agora.Message{m}
	if m.Stream == "" { // it is a reply that begins, and is aborted: so it goes where a reply would
		parts[0].Stream = r.name
		start := agora.Message{Kind: agora.Reply, Part: agora.Start, Stream: r.name, To: m.To, Meta: agora.Meta{Parent: r.name, Request: r.name}}
		parts = []agora.Message{start, parts[0]}
	}
	ctx, cancel := context.WithTimeout(r.node.registry.ctx, failTime)
	defer cancel()
	if err := r.say(ctx, parts); err != nil {
		r.node.registry.cfg.Log.Debug("a request's failure was not told", "agent", r.node.at.Agent, "peer", r.x.Peer(), "err", err)
	}
}

// callTool calls a tool of a toolbox, once, and replies by what that answers.
func (r *request) callTool(reader *aip.ResponseReader, first *demux.Part) {
	tool, arguments, is := wire.ToolCallOf(first.Body)
	if !is || first.Media != "" || first.Part != agora.Whole {
		r.refuse(reader, agora.Errorf(agora.InvalidRequest, "a toolbox takes calls of its tools, and nothing else"))
		return
	}
	ctx, cancel := r.context(first)
	defer cancel()
	route := aip.Route{Sender: string(r.x.Peer()), Receiver: string(r.node.at.Agent)}
	in := aip.NewFrame(aip.AppendToolRequest(nil, route, aip.SessionID(&first.Message, r.name), aip.ToolCall{Name: tool, Arguments: arguments}))
	out := new(aip.Frame)
	err := r.node.channel.Invoke(ctx, toolMethod(r.node.via != nil), in, out)
	defer out.Free()
	r.judged(err)
	if err != nil {
		r.refuse(reader, aip.Failure(statusOf(err)))
		return
	}
	m, refused, err := aip.ToolResult(out.Bytes())
	switch {
	case err != nil:
		r.refuse(reader, agora.AsError(err))
	case refused != nil:
		r.refuse(reader, refused)
	default:
		r.reply(reader, m.Body, nil)
	}
}

// refuse replies that a tool has failed.
func (r *request) refuse(reader *aip.ResponseReader, e *agora.Error) {
	r.reply(reader, failure(e), failureHead)
}

// reply replies by a whole message. head is what it is beside its payload, for doors of this dialect.
func (r *request) reply(reader *aip.ResponseReader, body, head []byte) {
	m := agora.Message{Kind: agora.Reply, To: agora.Address{Agent: reader.To}, Body: body, Meta: agora.Meta{Parent: r.name, Request: r.name}}
	if head != nil {
		m.Meta.Dialect, m.Meta.Head = aip.Dialect, head
	}
	ctx, cancel := context.WithTimeout(r.node.registry.ctx, failTime)
	defer cancel()
	if err := r.say(ctx, []agora.Message{m}); err != nil {
		r.node.registry.cfg.Log.Debug("what a tool has answered was not told", "agent", r.node.at.Agent, "peer", r.x.Peer(), "err", err)
	}
}

// failTime bounds how long a failure may take to be told.
const failTime = 5 * time.Second

// judged draws from how a call has ended what that says of the node: nothing where it is no status that has ended it.
func (r *request) judged(err error) {
	n := r.node
	if _, is := status.FromError(err); !is || r.x.Context().Err() != nil || n.via != nil {
		return
	}
	if v := judge(n.toolbox, err, r.sent); v == lives || v == doubted && n.answers(n.registry.ctx) {
		n.Alive()
		return
	}
	n.registry.cfg.Log.Info("node was deregistered, as it failed a call", "agent", n.at.Agent, "tenant", n.at.Tenant, "code", status.Code(err).String())
	n.end(edge.Refused, true)
}
