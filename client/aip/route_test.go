package aip

import (
	"bytes"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/types/known/wrapperspb"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// withUnknown gives a message a field that nobody here knows.
func withUnknown(m proto.Message) {
	b := protowire.AppendTag(nil, 777, protowire.BytesType)
	m.ProtoReflect().SetUnknown(protowire.AppendString(b, "from the future"))
}

func TestASessionIsRefusedThatDoesNotBeginAsItShould(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	startToolbox(t, config(g, "box"), nil)
	noSession := quest(StartQuest, "bob")
	noSession.SessionId = ""
	for about, try := range map[string]struct {
		first []*Message
		code  codes.Code
		text  string
	}{
		"no message":          {nil, codes.Aborted, "Empty request stream"},
		"HOLD_QUEST first":    {[]*Message{quest(HoldQuest, "bob")}, codes.InvalidArgument, "First message must be START_QUEST"},
		"STOP_RESPONSE first": {[]*Message{quest(StopResponse, "bob")}, codes.InvalidArgument, "First message must be START_QUEST"},
		"no session":          {[]*Message{noSession}, codes.InvalidArgument, "Missing session_id in START_QUEST"},
		"nobody":              {[]*Message{quest(StartQuest, "x")}, codes.NotFound, "Receiver not found"},
		"a toolbox":           {[]*Message{quest(StartQuest, "box")}, codes.NotFound, "Receiver not found"},
	} {
		s, err := rawGateway(t, g).RouteAgentCalling(await.Context(t))
		_, err = speak(s, err, try.first...)
		isStatus(t, about, err, try.code, try.text)
		if try.code == codes.NotFound {
			continue // which is for gateways to say
		}
		s, err = wire.NewAgentServiceClient(raw(t, bob.Address())).CallAgent(await.Context(t))
		_, err = speak(s, err, try.first...)
		isStatus(t, about+", of the agent itself", err, try.code, try.text)
	}
	_, err := rawGateway(t, g).RouteToolCalling(await.Context(t), &ToolRequest{ReceiverId: "bob"})
	isStatus(t, "a tool of an agent", err, codes.NotFound, "Receiver not found")
}

func TestWhatBreaksTheRulesEndsTheSession(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	change := func(f func(*Message)) *Message {
		m := quest(HoldQuest, "bob")
		f(m)
		return m
	}
	for about, bad := range map[string]*Message{
		"a second START_QUEST": quest(StartQuest, "bob"),
		"another sender":       change(func(m *Message) { m.SenderId = "eve" }),
		"another receiver":     change(func(m *Message) { m.ReceiverId = "eve" }),
		"another session":      change(func(m *Message) { m.SessionId = "s2" }),
	} {
		for where, open := range map[string]func() (grpc.BidiStreamingClient[Message, Message], error){
			"the gateway": func() (grpc.BidiStreamingClient[Message, Message], error) {
				return rawGateway(t, g).RouteAgentCalling(await.Context(t))
			},
			"the agent": func() (grpc.BidiStreamingClient[Message, Message], error) {
				return wire.NewAgentServiceClient(raw(t, bob.Address())).CallAgent(await.Context(t))
			},
		} {
			s, err := open()
			if err != nil {
				t.Fatal(err)
			}
			in := func(m *Message) *Message { // a session of its own: the agent may not know yet that the gateway has ended the one before
				m = proto.Clone(m).(*Message)
				m.SessionId += " " + about + " at " + where
				return m
			}
			s.Send(in(quest(StartQuest, "bob")))
			s.Recv() // the session has been answered
			all, err := speak(s, nil, in(bad))
			isStatus(t, about+" at "+where, err, codes.InvalidArgument, "")
			if n := len(all); n != 1 || all[0].GetSessionStatus() != StopResponse || TextOf(all[0].GetContent()) != status.Convert(err).Message() {
				t.Errorf("%s at %s: the last answers are %v, want one STOP_RESPONSE that says why", about, where, all)
			}
		}
	}
	lists(t, g, "bob", true)
}

func TestSessionsGoOnSideBySide(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	caller := newAgent(t, config(g, "alice"))
	calls := make([]*Call, 20)
	for i := range calls {
		calls[i] = caller.Call(await.Context(t), "bob")
		defer calls[i].Close()
	}
	say := func(i int, say func(...*ContentItem) error, text string) {
		t.Helper()
		if err := say(Text(text)); err != nil {
			t.Fatal(err)
		}
		m, err := calls[i].Receive()
		if err != nil || TextOf(m.GetContent()) != text || m.GetSenderId() != "bob" || m.GetReceiverId() != "alice" || m.GetSessionId() != calls[i].ID() || m.GetReplyToMessageId() == "" {
			t.Fatalf("%q is answered by %v, %v", text, m, err)
		}
	}
	for i, c := range calls {
		say(i, c.Start, fmt.Sprint("start ", i))
	}
	for round := range 3 {
		for i, c := range slices.Backward(calls) {
			say(i, c.Hold, fmt.Sprint("hold ", round, i))
		}
	}
	for i, c := range calls {
		say(i, c.Stop, fmt.Sprint("stop ", i))
		if m, err := c.Receive(); m != nil || fmt.Sprint(err) != "EOF" {
			t.Errorf("behind the end comes %v, %v", m, err)
		}
	}
}

// agentFunc is an agent without this package.
type agentFunc struct {
	wire.UnimplementedAgentServiceServer
	f func(grpc.BidiStreamingServer[Message, Message]) error
}

func (a agentFunc) CallAgent(s grpc.BidiStreamingServer[Message, Message]) error { return a.f(s) }

// rawAgent serves an agent without this package, and registers it.
func rawAgent(t testing.TB, g *Gateway, id string, f func(grpc.BidiStreamingServer[Message, Message]) error) {
	t.Helper()
	address := serveRaw(t, func(s *grpc.Server) { wire.RegisterAgentServiceServer(s, agentFunc{f: f}) })
	if _, err := rawGateway(t, g).RegisterAgent(await.Context(t), &AgentInfo{AgentId: id, Address: address}); err != nil {
		t.Fatal(err)
	}
}

func TestAStatusIsPassedOnAndABrokenAgentIsDeregistered(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	for code := codes.Canceled; code <= codes.Unauthenticated; code++ {
		want, _ := status.New(code, "as it is").WithDetails(wrapperspb.String("a detail"))
		rawAgent(t, g, "bob", func(s grpc.BidiStreamingServer[Message, Message]) error {
			s.Recv()
			s.Send(&Message{SessionStatus: HoldResponse, Content: []*ContentItem{Text("first")}})
			return want.Err()
		})
		s, err := rawGateway(t, g).RouteAgentCalling(await.Context(t))
		all, err := speak(s, err, quest(StartQuest, "bob"))
		if !proto.Equal(status.Convert(err).Proto(), want.Proto()) {
			t.Errorf("the status is %v, want %v", status.Convert(err).Proto(), want.Proto())
		}
		if len(all) != 2 || all[1].GetSessionStatus() != StopResponse || TextOf(all[1].GetContent()) != "as it is" {
			t.Errorf("%v: the answers are %v, want HOLD_RESPONSE and STOP_RESPONSE", code, all)
		}
		broken := []codes.Code{codes.Internal, codes.Unknown, codes.Unavailable, codes.Unimplemented, codes.DataLoss}
		if _, there := g.directory.find("bob"); there == slices.Contains(broken, code) {
			t.Errorf("%v: the agent is listed: %v", code, there)
		}
		rawGateway(t, g).DeregisterNode(await.Context(t), &wire.DeregisterNodeRequest{NodeId: "bob"})
	}
}

func TestAnAgentThatDiesInASessionIsDeregistered(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	call := newAgent(t, config(g, "alice")).Call(await.Context(t), "bob")
	defer call.Close()
	if err := call.Start(Text("hi")); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Receive(); err != nil {
		t.Fatal(err)
	}
	kill(bob.node)
	last, err := call.Receive()
	if err != nil || last.GetSessionStatus() != StopResponse || TextOf(last.GetContent()) == "" {
		t.Errorf("the last answer is %v, %v, want STOP_RESPONSE that says why", last, err)
	}
	_, err = call.Receive()
	isStatus(t, "the session", err, codes.Unavailable, "")
	lists(t, g, "bob", false)
}

func TestAToolboxIsDeregisteredOnlyWhenItIsGone(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	box := startToolbox(t, config(g, "box"), map[string]func(context.Context, string) (any, error){
		"busy": func(context.Context, string) (any, error) { return nil, status.Error(codes.Unavailable, "busy") },
	})
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	_, err := caller.CallTool(ctx, "box", "busy", nil)
	isStatus(t, "a tool that is busy", err, codes.Unavailable, "busy")
	if _, there := g.directory.find("box"); !there {
		t.Error("the toolbox is deregistered though it is there")
	}
	kill(box.node)
	_, err = caller.CallTool(ctx, "box", "busy", nil)
	isStatus(t, "a toolbox that is gone", err, codes.Unavailable, "")
	_, err = caller.CallTool(ctx, "box", "busy", nil)
	isStatus(t, "one that is deregistered", err, codes.NotFound, "Receiver not found")
}

func TestWhatNobodyKnowsArrivesAsItWasSent(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), func(_ context.Context, s *Session) error {
		for m := range s.Messages() {
			m.SessionStatus += 2 - m.SessionStatus%2
			m.SenderId, m.ReceiverId = "bob", "alice"
			if m.SessionStatus > StopResponse {
				m.SessionStatus = StopResponse
			}
			if err := s.Send(m); err != nil {
				return err
			}
		}
		return nil
	})
	sent := quest(StartQuest, "bob")
	withUnknown(sent)
	binary := make([]byte, 4096)
	rand.Read(binary)
	sent.Content = []*ContentItem{Text("ä\x00"), Image(binary), Audio(binary), Embedded(binary), Embedded(nil)}
	withUnknown(sent.Content[1])
	s, err := rawGateway(t, g).RouteAgentCalling(await.Context(t))
	all, err := speak(s, err, proto.Clone(sent).(*Message), quest(StopQuest, "bob"))
	if err != nil || len(all) != 2 {
		t.Fatalf("%d answers, %v, want 2", len(all), err)
	}
	sent.SenderId, sent.ReceiverId, sent.SessionStatus = "bob", "alice", all[0].GetSessionStatus()
	sent.MessageId, sent.ReplyToMessageId = all[0].GetMessageId(), all[0].GetReplyToMessageId()
	if !proto.Equal(all[0], sent) {
		t.Errorf("what came is not what was sent: %v", all[0])
	}
}

// toolFunc is a toolbox without this package.
type toolFunc struct {
	wire.UnimplementedToolServiceServer
	f func(context.Context, *ToolRequest) (*ToolResponse, error)
}

func (f toolFunc) CallTool(ctx context.Context, in *ToolRequest) (*ToolResponse, error) {
	return f.f(ctx, in)
}

func TestTheCallOfAToolPassesAsItIs(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	var got *ToolRequest
	want := &ToolResponse{SenderId: "box", IsError: true, ErrorMessage: "no", Content: []*ContentItem{Embedded([]byte{0, 255})}}
	withUnknown(want)
	address := serveRaw(t, func(s *grpc.Server) {
		wire.RegisterToolServiceServer(s, toolFunc{f: func(_ context.Context, in *ToolRequest) (*ToolResponse, error) {
			got = in
			return want, nil
		}})
	})
	if _, err := rawGateway(t, g).RegisterTool(await.Context(t), &ToolBoxInfo{ToolboxId: "box", Address: address}); err != nil {
		t.Fatal(err)
	}
	req := &ToolRequest{SenderId: "alice", ReceiverId: "box", SessionId: "s", ToolName: "t", Arguments: `{"a": 1e0}`}
	withUnknown(req)
	resp, err := rawGateway(t, g).RouteToolCalling(await.Context(t), req)
	if err != nil || !proto.Equal(resp, want) || !proto.Equal(got, req) {
		t.Errorf("asked is %v, answered %v, %v, want %v and %v", got, resp, err, req, want)
	}
}

// longest returns a message of a call to bob that is as long as a message may be.
func longest(t *testing.T, call *Call) *Message {
	t.Helper()
	m := quest(HoldQuest, "bob")
	m.SessionId, m.MessageId, m.ReplyToMessageId = call.ID(), strings.Repeat("x", 200), strings.Repeat("x", 200) // its echo has a shorter id
	m.Content = []*ContentItem{Embedded(make([]byte, defaultMessage-1000))}
	rand.Read(m.Content[0].GetEmbedded())
	m.Content = append(m.Content, Embedded(make([]byte, defaultMessage-proto.Size(m)-6)))
	if n := proto.Size(m); n != defaultMessage {
		t.Fatalf("the message has %d bytes", n)
	}
	return m
}

func TestMessagesAreAsLongAsTheBound(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	call := newAgent(t, config(g, "alice")).Call(await.Context(t), "bob")
	defer call.Close()
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Receive(); err != nil {
		t.Fatal(err)
	}
	m := longest(t, call)
	if err := call.Send(m); err != nil {
		t.Fatal(err)
	}
	back, err := call.Receive()
	if err != nil || !bytes.Equal(back.GetContent()[0].GetEmbedded(), m.Content[0].GetEmbedded()) {
		t.Fatalf("what came back is not what was sent: %v %.200q", err, TextOf(back.GetContent()))
	}
	m.Content = append(m.Content, Embedded(nil))
	if err = call.Send(m); err == nil {
		_, err = call.Receive()
	}
	isStatus(t, "a longer one", err, codes.ResourceExhausted, "")
}

func TestAMessageThatIsTooLongForTheGatewayEndsItsSessionOnly(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{MaxMessage: 1 << 20})
	startAgent(t, config(g, "bob"), echo)
	caller := newAgent(t, config(g, "alice"))
	call := caller.Call(await.Context(t), "bob")
	defer call.Close()
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := call.Receive(); err != nil {
		t.Fatal(err)
	}
	if err := call.Hold(Embedded(make([]byte, 1<<20))); err != nil && !errors.Is(err, io.EOF) {
		t.Fatal(err)
	}
	_, err := call.Receive() // gRPC itself ends it: there is no last answer
	isStatus(t, "the session", err, codes.ResourceExhausted, "")
	if got, err := answers(caller.askCall(await.Context(t), "bob")); err != nil || len(got) != 2 {
		t.Errorf("the next session is answered by %q, %v", got, err)
	}
}

func TestTheEndOfACallReachesTheOtherEnd(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	begun, ended := make(chan string, 2), make(chan error, 2)
	startAgent(t, config(g, "bob"), func(ctx context.Context, s *Session) error {
		if _, limited := ctx.Deadline(); !limited {
			t.Error("the deadline has not come")
		}
		begun <- s.From()
		<-ctx.Done()
		ended <- ctx.Err()
		return ctx.Err()
	})
	ctx, cancel := context.WithTimeout(await.Context(t), time.Hour)
	call := newAgent(t, config(g, "alice")).Call(ctx, "bob")
	defer call.Close()
	if err := call.Start(); err != nil {
		t.Fatal(err)
	}
	await.Recv(t, "the session", begun)
	cancel()
	if err := await.Recv(t, "the end", ended); !errors.Is(err, context.Canceled) {
		t.Errorf("the agent's context ends with %v, want %v", err, context.Canceled)
	}
	_, err := call.Receive()
	isStatus(t, "the caller", err, codes.Canceled, "")
	lists(t, g, "bob", true)

	ctx, cancel = context.WithTimeout(await.Context(t), 50*time.Millisecond)
	defer cancel()
	late := newAgent(t, config(g, "alice")).Call(ctx, "bob")
	defer late.Close()
	if err = late.Start(); err == nil {
		_, err = late.Receive()
	}
	isStatus(t, "a deadline", err, codes.DeadlineExceeded, "")
	lists(t, g, "bob", true)
}

func TestWhoDoesNotReadSlowsNobodyElse(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), func(ctx context.Context, s *Session) error {
		if s.From() == "slow" {
			<-ctx.Done()
			return ctx.Err()
		}
		return echo(ctx, s)
	})
	ctx, cancel := context.WithCancel(await.Context(t))
	slow := newAgent(t, config(g, "slow")).Call(ctx, "bob")
	defer slow.Close()
	if err := slow.Start(); err != nil {
		t.Fatal(err)
	}
	var writing sync.WaitGroup
	const pieces = 64
	sent := 0
	writing.Go(func() {
		for slow.Hold(Embedded(make([]byte, 1<<20))) == nil {
			sent++
		}
	})
	for range 10 {
		if got, err := answers(newAgent(t, config(g, "alice")).askCall(ctx, "bob")); err != nil || len(got) != 2 {
			t.Errorf("beside it, bob answers %q, %v", got, err)
		}
	}
	cancel()
	writing.Wait()
	if sent >= pieces {
		t.Errorf("%d MiB were taken that nobody read", sent)
	}
}

func TestAHandlerThatFailsDoesNotTakeItsAgentAway(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	var fails error
	startAgent(t, config(g, "bob"), func(_ context.Context, s *Session) error {
		s.Receive()
		s.Reply(Text("first"))
		return fails
	})
	caller := newAgent(t, config(g, "alice"))
	for _, try := range []struct {
		err  error
		code codes.Code
		text string
	}{
		{errors.New("no luck"), codes.Aborted, "no luck"},
		{status.Error(codes.Unavailable, "the toolbox is away"), codes.Aborted, "the toolbox is away"},
		{fmt.Errorf("asking: %w", status.Error(codes.Internal, "it broke")), codes.Aborted, ""},
		{status.Error(codes.PermissionDenied, "not you"), codes.PermissionDenied, "not you"},
		{agora.Errorf(agora.RateLimited, "too fast"), codes.ResourceExhausted, "too fast"},
		{agora.Errorf(agora.Unavailable, "away"), codes.Aborted, "away"},
	} {
		fails = try.err
		got, err := answers(caller.askCall(await.Context(t), "bob"))
		isStatus(t, fmt.Sprint(try.err), err, try.code, try.text)
		if want := []string{"HOLD_RESPONSE first", "STOP_RESPONSE " + status.Convert(err).Message()}; !slices.Equal(got, want) {
			t.Errorf("%v: the answers are %q, want %q", try.err, got, want)
		}
		lists(t, g, "bob", true)
	}
}
