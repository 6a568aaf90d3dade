//go:build interop

package aip

import (
	"context"
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/types/known/durationpb"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

// goNode is an agent and a toolbox of client/aip, which do what those in other languages do.
type goNode struct {
	mu        sync.Mutex // guards the field below
	cancelled map[string]chan struct{}
}

// node is an agent or a toolbox in Go.
type node interface {
	Start() error
	Register(ctx context.Context, gateways ...string) error
	Close() error
}

// serves has a node registered with an edge until the test is over. err is that of its making.
func serves(t *testing.T, n node, err error, edge string) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	if err := n.Start(); err != nil {
		t.Fatal(err)
	}
	if err := n.Register(await.Context(t), edge); err != nil {
		t.Fatal(err)
	}
}

// servesGo has an agent and a toolbox in Go registered at edges until the test is over, and returns what their ids end
// in.
func servesGo(t *testing.T, edges []string) (tag string) {
	t.Helper()
	n := &goNode{cancelled: map[string]chan struct{}{}}
	tag = tagOf(t) + "-go"
	agent, err := aip.NewAgent(aip.Config{ID: "agent-" + tag})
	if err == nil {
		agent.Handle(n.converse)
	}
	serves(t, agent, err, edges[0])
	box, err := aip.NewToolbox(aip.Config{ID: "toolbox-" + tag})
	for name, f := range n.tools() {
		tool := aip.Tool{Name: name, Version: "1"}
		if name == "add" {
			tool.Arguments = `{"type":"object","required":["a","b"],"properties":{"a":{"type":"integer"},"b":{"type":"integer"}}}`
		}
		if err == nil {
			err = box.AddTool(tool, f)
		}
	}
	serves(t, box, err, edges[1])
	return tag
}

// ended returns what is closed once a session has been cancelled.
func (n *goNode) ended(session string) chan struct{} {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.cancelled[session] == nil {
		n.cancelled[session] = make(chan struct{})
	}
	return n.cancelled[session]
}

// fails returns the error that ends a call with a status, whose details say when to try again.
func fails(name string, after time.Duration) error {
	var code codes.Code
	if err := code.UnmarshalJSON([]byte(`"` + name + `"`)); err != nil {
		return err
	}
	s, err := status.New(code, "it fails: "+name).WithDetails(&errdetails.RetryInfo{RetryDelay: durationpb.New(after)})
	if err != nil {
		return err
	}
	return s.Err()
}

// converse holds a session: it does what it is asked for by its first word, else says back what comes.
func (n *goNode) converse(ctx context.Context, s *aip.Session) error {
	for m := range s.Messages() {
		if m.GetSessionStatus() == aip.StartQuest {
			if did, err := n.begins(ctx, s, aip.TextOf(m.GetContent())); err != nil {
				return err
			} else if did {
				continue
			}
		}
		answer := &aip.Message{SessionStatus: aip.HoldResponse, TaskInfo: m.GetTaskInfo(), ReplyToMessageId: m.GetMessageId(), Content: m.GetContent()}
		if m.GetSessionStatus() == aip.StopQuest {
			answer.SessionStatus = aip.StopResponse
		}
		if err := s.Send(answer); err != nil {
			return err
		}
	}
	return nil
}

// begins does what the first word of a session asks for, and reports whether it asks for anything.
func (n *goNode) begins(ctx context.Context, s *aip.Session, first string) (did bool, err error) {
	does, what, _ := strings.Cut(first, " ")
	switch does {
	case "hang":
		_, timed := ctx.Deadline()
		err := s.Reply(aip.Text(fmt.Sprintf("hanging, timed %t", timed)))
		if err == nil || ctx.Err() != nil {
			<-ctx.Done()
			close(n.ended(s.ID()))
			err = ctx.Err()
		}
		return true, err
	case "answer":
		if err := s.Reply(aip.Text("so far")); err != nil {
			return true, err
		}
		return true, fails(what, 1500*time.Millisecond)
	case "fail":
		return true, fails(what, 1500*time.Millisecond)
	case "count":
		many, err := strconv.Atoi(what)
		for i := 0; i < many && err == nil; i++ {
			err = s.Reply(aip.Text(strconv.Itoa(i)))
		}
		return true, err
	}
	return false, nil
}

// tools returns the functions of the toolbox.
func (n *goNode) tools() map[string]func(context.Context, json.RawMessage) (any, error) {
	type arguments struct {
		A, B, N       int
		Code, Session string
	}
	tool := func(f func(context.Context, arguments) (any, error)) func(context.Context, json.RawMessage) (any, error) {
		return func(ctx context.Context, raw json.RawMessage) (any, error) {
			var a arguments
			if err := json.Unmarshal(raw, &a); err != nil {
				return nil, err
			}
			return f(ctx, a)
		}
	}
	return map[string]func(context.Context, json.RawMessage) (any, error){
		"echo": func(_ context.Context, raw json.RawMessage) (any, error) { return string(raw), nil },
		"add":  tool(func(_ context.Context, a arguments) (any, error) { return a.A + a.B, nil }),
		"bytes": tool(func(_ context.Context, a arguments) (any, error) {
			return aip.Image(everyByte[:a.N]), nil
		}),
		"fail":  tool(func(_ context.Context, a arguments) (any, error) { return nil, fails(a.Code, 2*time.Second) }),
		"wrong": tool(func(context.Context, arguments) (any, error) { return nil, fmt.Errorf("it is wrong") }),
		"hang": tool(func(ctx context.Context, _ arguments) (any, error) {
			<-ctx.Done()
			return nil, ctx.Err()
		}),
		"cancelled": tool(func(ctx context.Context, a arguments) (any, error) {
			select {
			case <-n.ended(a.Session):
				return "cancelled", nil
			case <-ctx.Done():
				return nil, ctx.Err()
			}
		}),
	}
}

// everyByte is one of each.
var everyByte = func() (b []byte) {
	for i := range 256 {
		b = append(b, byte(i))
	}
	return b
}()
