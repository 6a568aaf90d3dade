//go:build interop

package aip

import (
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

// callsGo has an agent in Go hold a session with that of a peer, by each edge, and call its tools.
func callsGo(t *testing.T, peer string, edges []string) {
	for k, edge := range edges {
		me, err := aip.NewAgent(aip.Config{ID: fmt.Sprint("caller-", tagOf(t), k), Gateways: []string{edge}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { me.Close() })
		talksGo(t, me, "agent-"+peer)
		toolsGo(t, me, "toolbox-"+peer)
	}
}

// toolsGo calls the tools of a toolbox.
func toolsGo(t *testing.T, me *aip.Agent, box string) {
	t.Helper()
	for tool, of := range map[string]struct{ arguments, want string }{
		"add": {`{"a": 20, "b": 22}`, "42"}, "echo": {`{"x": 1.0e2}`, `{"x": 1.0e2}`}, "wrong": {`{}`, ""},
	} {
		out, err := me.CallTool(await.Context(t), box, tool, json.RawMessage(of.arguments))
		if wrong := tool == "wrong"; err != nil || out.GetIsError() != wrong || !wrong && aip.TextOf(out.GetContent()) != of.want {
			t.Errorf("%s of %s: %v, %v", tool, box, out, err)
		}
	}
	_, err := me.CallTool(await.Context(t), box, "fail", map[string]string{"code": "FAILED_PRECONDITION"})
	if s := status.Convert(err); s.Code() != codes.FailedPrecondition || s.Message() != "it fails: FAILED_PRECONDITION" || retryAfter(s) != 2*time.Second {
		t.Errorf("a tool of %s that fails: %v, %v", box, err, s.Details())
	}
}

// retryAfter returns what a status says of trying again; zero for nothing.
func retryAfter(s *status.Status) time.Duration {
	for _, d := range s.Details() {
		if r, is := d.(*errdetails.RetryInfo); is {
			return r.GetRetryDelay().AsDuration()
		}
	}
	return 0
}

// talksGo holds a session in which what is said is said back.
func talksGo(t *testing.T, me *aip.Agent, with string) {
	t.Helper()
	var saying sync.WaitGroup
	defer saying.Wait()
	c := me.Call(await.Context(t), with)
	defer c.Close()
	content := []*aip.ContentItem{aip.Text("ü😀"), aip.Image(everyByte), aip.Audio(nil), aip.Embedded(slices.Repeat(everyByte, 4096))}
	if err := c.Start(content...); err != nil {
		t.Fatal(err)
	}
	said := make(chan error, 1)
	saying.Go(func() {
		var err error
		for i := 0; i < 20 && err == nil; i++ {
			err = c.Hold(content...)
		}
		if err == nil {
			err = c.Stop(content...)
		}
		said <- err
	})
	many := 0
	for m, err := range c.Messages() {
		if err != nil {
			t.Errorf("answer %d of %s: %v", many, with, err)
			break
		}
		many++
		if !slices.EqualFunc(m.GetContent(), content, func(a, b *aip.ContentItem) bool { return proto.Equal(a, b) }) {
			t.Errorf("answer %d of %s is another", many, with)
		}
	}
	if err := await.Recv(t, "all is said", said); err != nil || many != 22 {
		t.Errorf("%s: %d answers, %v", with, many, err)
	}
}
