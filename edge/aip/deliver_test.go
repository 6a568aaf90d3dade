package aip_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"testing"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

// socket has an agent of a WebSocket register with edge k.
func (s *site) socket(k int, id string) *agoratest.Client {
	s.t.Helper()
	a := agoratest.Connect(s.t, agoratest.Direct{}, s.URL(k), "", nil)
	a.Send(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}}`)
	a.Expect(`{"type":"agent.registered"}`)
	return a
}

// heard is what a node was told in a session.
type heard struct {
	mu  sync.Mutex // guards the fields below
	all []string
	err error
}

func (h *heard) add(m *wire.AgentMessage) {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := m.GetSessionStatus().String()
	for _, c := range m.GetContent() {
		if _, is := c.GetData().(*wire.ContentItem_Text); is {
			said += " " + c.GetText()
		} else {
			said += fmt.Sprintf(" %T %d", c.GetData(), len(c.GetImage())+len(c.GetAudio())+len(c.GetEmbedded()))
		}
	}
	h.all = append(h.all, said)
}

func (h *heard) get() ([]string, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	return append([]string(nil), h.all...), h.err
}

// hearing returns what a node does that notes what it is told and answers by echo.
func hearing(h *heard) func(wire.AgentService_CallAgentServer) error {
	return func(c wire.AgentService_CallAgentServer) error {
		for {
			in, err := c.Recv()
			if err != nil {
				h.mu.Lock()
				defer h.mu.Unlock()
				h.err = err
				if errors.Is(err, io.EOF) {
					return nil
				}
				return err
			}
			h.add(in)
			out := reply(in, wire.AgentMessage_HOLD_RESPONSE, in.GetContent()...)
			if in.GetSessionStatus() == wire.AgentMessage_STOP_QUEST {
				out.SessionStatus = wire.AgentMessage_STOP_RESPONSE
			} else if len(in.GetContent()) == 0 {
				continue
			}
			if err := c.Send(out); err != nil {
				return err
			}
		}
	}
}

func TestAStreamOfAnAgentOfAWebSocketIsASessionWithANode(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	var h heard
	s.registered(0, "node", startNode(t, &node{agent: hearing(&h)}))
	al := s.socket(1, "al")
	al.Send(`{"type":"send","to":"node","stream_id":"st","stream":true,"payload":{"request_id":"r","do":"it"}}`)
	al.Await(`{"type":"reply","from":"node","stream":true}`)
	al.Await(`{"type":"reply_chunk","from":"node","chunk":"{\"request_id\":\"r\",\"do\":\"it\"}"}`)
	al.Send(`{"type":"send_chunk","to":"node","stream_id":"st","chunk":"one"}`)
	al.Await(`{"type":"reply_chunk","from":"node","chunk":"one"}`)
	al.Send(`{"type":"send_end","to":"node","stream_id":"st"}`)
	al.Await(`{"type":"reply_end","from":"node"}`)
	got, _ := h.get()
	if want := `[START_QUEST {"request_id":"r","do":"it"} HOLD_QUEST one STOP_QUEST]`; fmt.Sprint(got) != want {
		t.Errorf("the node was told %v, want %s", got, want)
	}
}

func TestAMessageIsStartAndStopAndALoneStopResponseIsAReply(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	var h heard
	n := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
		for {
			in, err := c.Recv()
			if err != nil {
				return err
			}
			h.add(in)
			if in.GetSessionStatus() == wire.AgentMessage_STOP_QUEST {
				return c.Send(reply(in, wire.AgentMessage_STOP_RESPONSE, text(`{"answer":42}`)))
			}
		}
	}})
	s.registered(0, "node", n)
	al := s.socket(1, "al")
	for _, r := range []string{"r1", "r2"} {
		al.Send(`{"type":"send","to":"node","payload":{"request_id":"` + r + `"}}`)
		al.Await(`{"type":"reply","from":"node","request_id":"` + r + `","payload":{"answer":42}}`)
	}
	got, _ := h.get()
	if want := `[START_QUEST {"request_id":"r1"} STOP_QUEST START_QUEST {"request_id":"r2"} STOP_QUEST]`; fmt.Sprint(got) != want {
		t.Errorf("the node was told %v, want %s", got, want)
	}
}

func TestACancelOfItsSenderCancelsTheCallOfANode(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	var h heard
	s.registered(0, "node", startNode(t, &node{agent: hearing(&h)}))
	al := s.socket(1, "al")
	al.Send(`{"type":"send","to":"node","stream_id":"st","stream":true,"payload":"x"}`)
	al.Await(`{"type":"reply_chunk","from":"node","chunk":"x"}`)
	al.Send(`{"type":"cancel","to":"node","stream_id":"st"}`)
	await.True(t, "the call is cancelled", func() bool {
		_, err := h.get()
		return status.Code(err) == codes.Canceled
	})
	if got, _ := h.get(); fmt.Sprint(got) != `[START_QUEST x]` {
		t.Errorf("the node was told %v", got)
	}
	s.lists(2, "al", "node")
}

func TestWhatANodeFailsIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
		in, err := c.Recv()
		if err == nil && len(in.GetContent()) > 0 && in.GetContent()[0].GetText() == "stream" {
			err = c.Send(reply(in, wire.AgentMessage_HOLD_RESPONSE, text("so far")))
		}
		if err != nil {
			return err
		}
		return status.Error(codes.FailedPrecondition, "not now")
	}})
	s.registered(0, "node", n)
	al := s.socket(1, "al")
	al.Send(`{"type":"send","to":"node","stream_id":"st","stream":true,"payload":"stream"}`)
	al.Await(`{"type":"reply_chunk","from":"node","chunk":"so far"}`)
	al.Await(`{"type":"error","code":"STREAM_ABORTED"}`)
	al.Send(`{"type":"send","to":"node","payload":{"request_id":"r"}}`)
	al.Await(`{"type":"reply","from":"node","stream_id":"r"}`)
	al.Await(`{"type":"error","code":"STREAM_ABORTED","from":"node","stream_id":"r"}`)
	s.lists(2, "al", "node")
}

// Its last word does not stand where the call fails behind it.
func TestAFailureBehindTheLastWordIsTold(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	n := startNode(t, &node{agent: func(c wire.AgentService_CallAgentServer) error {
		for {
			in, err := c.Recv()
			if err != nil {
				return err
			}
			if in.GetSessionStatus() == wire.AgentMessage_STOP_QUEST {
				if err := c.Send(reply(in, wire.AgentMessage_STOP_RESPONSE, text("it fails"))); err != nil {
					return err
				}
				return status.Error(codes.ResourceExhausted, "it fails")
			}
		}
	}})
	s.registered(0, "node", n)
	al := s.socket(1, "al")
	al.Send(`{"type":"send","to":"node","payload":{"request_id":"r"}}`)
	al.Expect(`{"type":"reply","from":"node","stream_id":"r"}`, `{"type":"error","code":"STREAM_ABORTED","from":"node","stream_id":"r"}`)
	s.lists(2, "al", "node")
}

func TestToolsOfAToolboxAreToolsForEveryone(t *testing.T) {
	t.Parallel()
	s := open(t, setup{})
	box := startNode(t, &node{tool: func(_ context.Context, in *wire.ToolRequest) (*wire.ToolResponse, error) {
		switch in.GetToolName() {
		case "echo":
			return &wire.ToolResponse{Content: []*wire.ContentItem{text(in.GetArguments())}}, nil
		case "odd": // it succeeds
			return &wire.ToolResponse{Content: []*wire.ContentItem{text(`{"error":{"code":"NOT_FOUND","message":"found"}}`)}}, nil
		case "fails":
			return &wire.ToolResponse{IsError: true, ErrorMessage: "it can't"}, nil
		}
		return nil, status.Error(codes.NotFound, "no such tool")
	}})
	s.toolbox(0, "box", box, &wire.ToolInfo{Name: "echo", Arguments: `{"type":"object","properties":{"n":{"type":"integer"}}}`}, &wire.ToolInfo{Name: "fails"}, &wire.ToolInfo{Name: "odd"})
	al := s.guarded(1, "al")
	al.Send(`{"type":"call_tool","id":"1","to":"box","tool_name":"echo","arguments":{"n":1}}`)
	al.Await(`{"type":"tool.result","id":"1","body":{"n":1}}`)
	al.Send(`{"type":"call_tool","id":"2","to":"box","tool_name":"fails","arguments":{}}`)
	al.Await(`{"type":"tool.result","id":"2","error":{"code":"STREAM_ABORTED","message":"it can't"}}`)
	al.Send(`{"type":"call_tool","id":"5","to":"box","tool_name":"odd","arguments":{}}`)
	al.Await(`{"type":"tool.result","id":"5","body":{"error":{"code":"NOT_FOUND","message":"found"}}}`)
	al.Send(`{"type":"call_tool","id":"3","to":"box","tool_name":"echo","arguments":{"n":"x"}}`)
	al.Await(`{"type":"error","code":"INVALID_REQUEST"}`)
	al.Send(`{"type":"call_tool","id":"4","to":"box","tool_name":"other","arguments":{}}`)
	al.Await(`{"type":"error","code":"NOT_FOUND"}`)
}

// guarded is socket, at the door whose calls of tools are checked.
func (s *site) guarded(k int, id string) *agoratest.Client {
	s.t.Helper()
	a := agoratest.Connect(s.t, agoratest.Direct{}, "ws"+s.HTTP(k)[len("http"):]+"/guarded", "", nil)
	a.Send(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}}`)
	a.Expect(`{"type":"agent.registered"}`)
	return a
}
