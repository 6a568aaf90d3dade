package aip_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// session opens a session at an edge.
func (s *site) session(k int) wire.GatewayService_RouteAgentCallingClient {
	s.t.Helper()
	out, err := s.gateway(k, "").RouteAgentCalling(s.t.Context())
	if err != nil {
		s.t.Fatal(err)
	}
	return out
}

// says sends messages.
func says(t *testing.T, s wire.GatewayService_RouteAgentCallingClient, all ...*wire.AgentMessage) {
	t.Helper()
	for _, m := range all {
		if err := s.Send(m); err != nil && !errors.Is(err, io.EOF) {
			t.Fatal(err)
		}
	}
}

// hears returns the next message.
func hears(t *testing.T, s wire.GatewayService_RouteAgentCallingClient) *wire.AgentMessage {
	t.Helper()
	m, err := s.Recv()
	if err != nil {
		t.Fatalf("nothing came: %v", err)
	}
	return m
}

// ends reads on until the session has ended, and returns the messages that came and the status.
func ends(s wire.GatewayService_RouteAgentCallingClient) (all []*wire.AgentMessage, err error) {
	for {
		m, err := s.Recv()
		if errors.Is(err, io.EOF) {
			return all, nil
		}
		if err != nil {
			return all, err
		}
		all = append(all, m)
	}
}

func TestASessionBetweenNodesPassesAsItIsAtEveryEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	unknown := protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "kept")
	for k := range 3 {
		c := s.session(k)
		for i, status := range []wire.AgentMessage_SessionStatus{wire.AgentMessage_START_QUEST, wire.AgentMessage_HOLD_QUEST, wire.AgentMessage_STOP_QUEST} {
			m := asks("caller", "a", "s", status, text(fmt.Sprint("text ", i)), &wire.ContentItem{Data: &wire.ContentItem_Image{Image: []byte{0, 255, 128, byte(i)}}})
			m.Content[1].ProtoReflect().SetUnknown(unknown)
			says(t, c, m)
			got := hears(t, c)
			want := reply(m, wire.AgentMessage_HOLD_RESPONSE, m.GetContent()...)
			if status == wire.AgentMessage_STOP_QUEST {
				want.SessionStatus = wire.AgentMessage_STOP_RESPONSE
			}
			if !proto.Equal(got, want) {
				t.Errorf("edge %d: %v, want %v", k, got, want)
			}
		}
		if more, err := ends(c); err != nil || len(more) > 0 {
			t.Errorf("edge %d: behind STOP_RESPONSE: %v, %v", k, more, err)
		}
	}
}

func TestSessionsThatAreNoneAreRefusedInTheWordsOfTheProtocol(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	c := s.session(1)
	if err := c.CloseSend(); err != nil {
		t.Fatal(err)
	}
	_, err := ends(c)
	refused(t, "nothing", err, codes.Aborted, "Empty request stream")
	for what, of := range map[string]struct {
		code codes.Code
		text string
		all  []*wire.AgentMessage
	}{
		"no start":         {codes.InvalidArgument, "First message must be START_QUEST", []*wire.AgentMessage{asks("c", "a", "s", wire.AgentMessage_HOLD_QUEST)}},
		"no session":       {codes.InvalidArgument, "Missing session_id in START_QUEST", []*wire.AgentMessage{asks("c", "a", "", wire.AgentMessage_START_QUEST)}},
		"no receiver":      {codes.NotFound, "Receiver not found", []*wire.AgentMessage{asks("c", "b", "s", wire.AgentMessage_START_QUEST)}},
		"an empty one":     {codes.NotFound, "Receiver not found", []*wire.AgentMessage{asks("c", "", "s", wire.AgentMessage_START_QUEST)}},
		"no sender":        {codes.InvalidArgument, "", []*wire.AgentMessage{asks("", "a", "s", wire.AgentMessage_START_QUEST)}},
		"another session":  {codes.InvalidArgument, "", []*wire.AgentMessage{asks("c", "a", "s", wire.AgentMessage_START_QUEST), asks("c", "a", "t", wire.AgentMessage_HOLD_QUEST)}},
		"another sender":   {codes.InvalidArgument, "", []*wire.AgentMessage{asks("c", "a", "s", wire.AgentMessage_START_QUEST), asks("d", "a", "s", wire.AgentMessage_HOLD_QUEST)}},
		"another receiver": {codes.InvalidArgument, "", []*wire.AgentMessage{asks("c", "a", "s", wire.AgentMessage_START_QUEST), asks("c", "b", "s", wire.AgentMessage_HOLD_QUEST)}},
	} {
		c := s.session(1)
		says(t, c, of.all...)
		_, err := ends(c)
		refused(t, what, err, of.code, of.text)
	}
	if got := s.ids(0, ""); len(got) != 1 {
		t.Errorf("what its callers do wrong has deregistered a node: %q", got)
	}
}

func TestANodesStatusPassesAndSomeDeregisterIt(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	for code, stays := range map[codes.Code]bool{
		codes.InvalidArgument: true, codes.NotFound: true, codes.FailedPrecondition: true, codes.ResourceExhausted: true, codes.PermissionDenied: true, codes.Aborted: true,
		codes.Canceled: true, codes.DeadlineExceeded: true, codes.Unauthenticated: true, codes.OutOfRange: true, codes.AlreadyExists: true,
		codes.Internal: false, codes.Unknown: false, codes.Unavailable: false, codes.Unimplemented: false, codes.DataLoss: false,
	} {
		for _, answered := range []bool{false, true} {
			fails, err := status.New(code, "why it fails").WithDetails(&errdetails.ErrorInfo{Reason: "detail"})
			if err != nil {
				t.Fatal(err)
			}
			n := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
				if in, err := c.Recv(); err == nil && answered {
					_ = c.Send(reply(in, wire.AgentMessage_HOLD_RESPONSE, text("so far")))
				}
				return fails.Err()
			}})
			id := fmt.Sprint(code, answered)
			s.registered(0, id, n)
			c := s.session(1)
			says(t, c, asks("c", id, "s", wire.AgentMessage_START_QUEST))
			got, err := ends(c)
			refused(t, id, err, code, "why it fails")
			if d := status.Convert(err).Details(); len(d) != 1 {
				t.Errorf("%s: details %v", id, d)
			}
			if answered && (len(got) != 2 || got[1].GetSessionStatus() != wire.AgentMessage_STOP_RESPONSE || got[1].GetContent()[0].GetText() != "why it fails") || !answered && len(got) > 0 {
				t.Errorf("%s: before its status came %v", id, got)
			}
			if is := strings.Contains(strings.Join(s.ids(0, ""), " "), id); is != stays {
				t.Errorf("%s: it is listed: %t", id, is)
			}
		}
	}
}

func TestANodeThatDiesInACallIsToldAndDeregistered(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	c := s.session(1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("x")))
	hears(t, c)
	n.stop()
	got, err := ends(c)
	refused(t, "of a node that died", err, codes.Unavailable, "")
	if len(got) != 1 || got[0].GetSessionStatus() != wire.AgentMessage_STOP_RESPONSE {
		t.Errorf("before its status came %v", got)
	}
	s.lists(2)
}

func TestWhatIsLargeAndWhatStandsStillDisturbsNobody(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	s := open(t, setup{})
	held := make(chan struct{})
	still := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
		<-held // reads nothing
		return nil
	}})
	release := sync.OnceFunc(func() { close(held) })
	t.Cleanup(release) // before the node stops, which waits for it
	n := startNode(t, &node{})
	s.registered(0, "still", still)
	s.registered(0, "a", n)
	stuck := s.session(1)
	var work sync.WaitGroup
	work.Go(func() {
		for i := range 64 {
			status := wire.AgentMessage_HOLD_QUEST
			if i == 0 {
				status = wire.AgentMessage_START_QUEST
			}
			if stuck.Send(asks("c", "still", "s", status, &wire.ContentItem{Data: &wire.ContentItem_Audio{Audio: make([]byte, 1<<20)}})) != nil {
				return
			}
		}
	})
	c := s.session(1)
	const size = 16<<20 - 1<<10
	large := bytes.Repeat([]byte{0, 1, 2, 255}, size/4)
	bodies := [][]byte{large[:4], large, large[:8], large[:12]} // each message has so long to come: more large ones only take longer
	work.Go(func() {
		for i, body := range bodies {
			says(t, c, asks("c", "a", "s", []wire.AgentMessage_SessionStatus{wire.AgentMessage_START_QUEST, 1, 1, wire.AgentMessage_STOP_QUEST}[i], &wire.ContentItem{Data: &wire.ContentItem_Embedded{Embedded: body}}))
		}
	})
	got, err := ends(c)
	if err != nil || len(got) != len(bodies) {
		t.Fatalf("%d messages, %v", len(got), err)
	}
	for i, m := range got {
		if !bytes.Equal(m.GetContent()[0].GetEmbedded(), bodies[i]) {
			t.Error("its bytes are others")
		}
	}
	release()
	work.Wait()
}

func TestAMessageBeyondTheBoundEndsItsSessionAlone(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{MaxMessage: 1 << 20}})
	n := startNode(t, &node{})
	s.registered(0, "a", n)
	c := s.session(1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text(strings.Repeat("x", 2<<20))))
	_, err := ends(c)
	refused(t, "too large", err, codes.ResourceExhausted, "")
	c = s.session(1)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST))
	hears(t, c)
	says(t, c, asks("c", "a", "s", wire.AgentMessage_HOLD_QUEST, text(strings.Repeat("x", 2<<20))))
	_, err = ends(c)
	refused(t, "too large later", err, codes.ResourceExhausted, "")
	s.lists(0, "a")
}

func TestACancelADeadlineAndTracesPassToANode(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	over := make(chan error, 2)
	n := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
		if _, err := c.Recv(); err != nil {
			return err
		}
		_, timed := c.Context().Deadline()
		<-c.Context().Done()
		over <- fmt.Errorf("%w %t", c.Context().Err(), timed)
		return c.Context().Err()
	}})
	s.registered(0, "a", n)
	ctx, cancel := context.WithCancel(metadata.AppendToOutgoingContext(t.Context(), "traceparent", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01", "authorization", "Bearer x"))
	c, err := s.gateway(1, "").RouteAgentCalling(ctx)
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST))
	await.True(t, "it is called", func() bool {
		n.mu.Lock()
		defer n.mu.Unlock()
		return len(n.heads) == 1
	})
	if h := n.heads[0]; len(h.Get("traceparent")) != 1 || len(h.Get("authorization")) > 0 {
		t.Errorf("metadata %v", h)
	}
	cancel()
	if err := <-over; err == nil {
		t.Error("it was not cancelled")
	}
	s.lists(0, "a")
}

func TestAToolCallPassesAsItIsAtEveryEdge(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	box, agent := startNode(t, &node{}), startNode(t, &node{})
	s.toolbox(0, "box", box, &wire.ToolInfo{Name: "echo", Arguments: "anything"})
	s.registered(1, "a", agent)
	for k := range 3 {
		in := &wire.ToolRequest{SenderId: "c", ReceiverId: "box", SessionId: "s", ToolName: "echo", Arguments: "no JSON"}
		in.ProtoReflect().SetUnknown(protowire.AppendString(protowire.AppendTag(nil, 99, protowire.BytesType), "kept"))
		out, err := s.gateway(k, "").RouteToolCalling(t.Context(), in)
		if err != nil || out.GetContent()[0].GetText() != "no JSON" || out.GetReceiverId() != "c" {
			t.Errorf("edge %d: %v, %v", k, out, err)
		}
	}
	call := func(to string) error {
		_, err := s.gateway(2, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: to, ToolName: "echo"})
		return err
	}
	refused(t, "nobody's", call("nobody"), codes.NotFound, "Receiver not found")
	refused(t, "an agent's", call("a"), codes.NotFound, "")
	box.tool = func(context.Context, *wire.ToolRequest) (*wire.ToolResponse, error) {
		return nil, status.Error(codes.Internal, "it fails")
	}
	refused(t, "of one that fails", call("box"), codes.Internal, "it fails")
	s.lists(0, "a", "box")
	box.stop()
	refused(t, "of one that is gone", call("box"), codes.Unavailable, "")
	s.lists(0, "a")
}
