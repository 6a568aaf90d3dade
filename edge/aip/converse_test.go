package aip_test

import (
	"context"
	"fmt"
	"testing"
	"time"

	"google.golang.org/grpc/codes"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/internal/agoratest"
	wire "github.com/agora-relay/agora/wire/aip"
)

// saidBy returns what responses say: their statuses and texts.
func saidBy(all []*wire.AgentMessage) (said []string) {
	for _, m := range all {
		s := m.GetSessionStatus().String()
		for _, c := range m.GetContent() {
			s += " " + c.GetText()
		}
		said = append(said, s)
	}
	return said
}

func TestASessionIsAStreamToAnAgentOfAWebSocket(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	bob := s.socket(0, "bob")
	c := s.session(1)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text(`{"do":"it"}`)))
	bob.Expect(`{"type":"message","from":"al","stream_id":"s1","payload":{"do":"it"}}`)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_HOLD_QUEST, text("one"), text("two")))
	bob.Expect(`{"type":"message_chunk","from":"al","stream_id":"s1","chunk":"one"}`, `{"type":"message_chunk","chunk":"two"}`)
	bob.Send(`{"type":"reply","to":"al","stream_id":"s1","stream":true,"request_id":"s1","payload":null}`)
	bob.Send(`{"type":"reply_chunk","to":"al","stream_id":"s1","chunk":"an answer"}`)
	for {
		if got := hears(t, c); len(got.GetContent()) > 0 && got.GetContent()[0].GetText() == "an answer" {
			break
		}
	}
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_STOP_QUEST))
	bob.Await(`{"type":"message_end","from":"al","stream_id":"s1"}`)
	bob.Send(`{"type":"reply_chunk","to":"al","stream_id":"s1","chunk":"more"}`, `{"type":"reply_end","to":"al","stream_id":"s1"}`)
	got, err := ends(c)
	if want := "[HOLD_RESPONSE more STOP_RESPONSE]"; err != nil || fmt.Sprint(saidBy(got)) != want {
		t.Errorf("its end: %v, %v, want %s", saidBy(got), err, want)
	}
}

func TestAReplyBehindStopIsTheLastResponse(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.socket(0, "bob")
	c := s.session(1)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text("hi")), asks("al", "bob", "s1", wire.AgentMessage_STOP_QUEST))
	bob.Await(`{"type":"message_end","from":"al","stream_id":"s1"}`)
	bob.Send(`{"type":"reply","to":"al","request_id":"s1","payload":{"answer":42}}`)
	got, err := ends(c)
	if want := asks("bob", "al", "s1", wire.AgentMessage_STOP_RESPONSE, text(`{"answer":42}`)); err != nil || len(got) != 1 || !equalBut(got[0], want) {
		t.Errorf("%v, %v, want %v", got, err, want)
	}
}

// equalBut reports whether two messages are the same but for their ids.
func equalBut(a, b *wire.AgentMessage) bool {
	a = proto.CloneOf(a)
	a.MessageId = b.GetMessageId()
	return proto.Equal(a, b)
}

func TestASessionThatNobodyAnswersEndsWithStop(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}, door: aip.Config{StopWait: time.Millisecond}})
	bob := s.socket(0, "bob")
	c := s.session(1)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text("hi")), asks("al", "bob", "s1", wire.AgentMessage_STOP_QUEST))
	got, err := ends(c)
	if err != nil || fmt.Sprint(saidBy(got)) != "[STOP_RESPONSE]" {
		t.Errorf("%v, %v", saidBy(got), err)
	}
	bob.Await(`{"type":"message_end","from":"al","stream_id":"s1"}`)
}

func TestACancelNeverLooksLikeStop(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.socket(0, "bob")
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c, err := s.gateway(1, "").RouteAgentCalling(ctx)
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text("hi")))
	bob.Expect(`{"type":"message","from":"al","stream_id":"s1","payload":"hi"}`)
	cancel()
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"al","stream_id":"s1"}`)
	ctx, cancel = context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	c, err = s.gateway(1, "").RouteAgentCalling(ctx)
	if err != nil {
		t.Fatal(err)
	}
	says(t, c, asks("al", "bob", "s2", wire.AgentMessage_START_QUEST, text("hi")))
	bob.Expect(`{"type":"message","from":"al","stream_id":"s2","payload":"hi"}`)
	_, err = ends(c)
	refused(t, "too late", err, codes.DeadlineExceeded, "")
	f := bob.Await(`{"type":"error","from":"al","stream_id":"s2"}`)
	if code := f.Text("code"); code != "TIMEOUT" && code != "STREAM_ABORTED" {
		t.Errorf("its receiver is told %s", code)
	}
}

func TestACancelOfTheReceiverEndsTheSession(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := s.socket(0, "bob")
	c := s.session(1)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text("hi")))
	bob.Expect(`{"type":"message","from":"al","stream_id":"s1"}`)
	bob.Send(`{"type":"cancel","to":"al","stream_id":"s1"}`)
	_, err := ends(c)
	refused(t, "cancelled by its receiver", err, codes.Aborted, "")
}

func TestASessionWhoseEdgeIsKilledIsAbortedForItsReceiver(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Grace: time.Minute, Node: edge.Config{Lease: watchful}}})
	bob := s.socket(0, "bob")
	c := s.session(1)
	says(t, c, asks("al", "bob", "s1", wire.AgentMessage_START_QUEST, text("hi")))
	bob.Expect(`{"type":"message","from":"al","stream_id":"s1","payload":"hi"}`)
	s.CutEdge(1)
	_, err := ends(c)
	refused(t, "its caller is told", err, codes.Unavailable, "")
	bob.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"al","stream_id":"s1"}`)
}

func TestAToolOfAWebSocketIsCalledByAIP(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 2}})
	bob := agoratest.Connect(t, agoratest.Direct{}, s.URL(0), "", nil)
	bob.Send(`{"type":"agent.register","agent":{"id":"bob","tools":[{"name":"add","schema":{"type":"object","properties":{"n":{"type":"integer"}},"required":["n"]}}]}}`)
	bob.Expect(`{"type":"agent.registered"}`)
	call := func(tool, arguments string) (*wire.ToolResponse, error) {
		return s.gateway(1, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "al", ReceiverId: "bob", SessionId: "s", ToolName: tool, Arguments: arguments})
	}
	answered := make(chan struct{})
	go func() {
		defer close(answered)
		f := bob.Await(`{"type":"message","from":"al"}`)
		bob.Send(`{"type":"reply","to":"al","payload":{"request_id":` + agoratest.Quote(f.Text("request_id")) + `,"sum":3}}`)
	}()
	out, err := call("add", `{"n":1}`)
	<-answered
	if err != nil || len(out.GetContent()) != 1 || out.GetSenderId() != "bob" || out.GetReceiverId() != "al" || out.GetSessionId() != "s" {
		t.Errorf("%v, %v", out, err)
	}
	for what, of := range map[string]struct {
		tool, arguments string
		code            codes.Code
	}{
		"arguments that do not fit": {"add", `{"n":"x"}`, codes.InvalidArgument}, "arguments that are no JSON": {"add", `{`, codes.InvalidArgument},
		"a tool that is not there": {"sub", `{}`, codes.NotFound},
	} {
		_, err := call(of.tool, of.arguments)
		refused(t, what, err, of.code, "")
	}
}
