package aip_test

import (
	"testing"
	"time"

	"google.golang.org/genproto/googleapis/rpc/errdetails"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	wire "github.com/agora-relay/agora/wire/aip"
)

func TestWhatIsTooMuchIsRefusedAndSaysWhenToTryAgain(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1, Node: edge.Config{Limits: admission.Limits{Calls: 2}}}})
	n, box := startNode(t, &node{}), startNode(t, &node{})
	s.registered(0, "a", n)
	s.toolbox(0, "box", box)
	var held []wire.GatewayService_RouteAgentCallingClient
	for range 2 {
		c := s.session(0)
		says(t, c, asks("c", "a", "s", wire.AgentMessage_START_QUEST, text("x")))
		hears(t, c)
		held = append(held, c)
	}
	c := s.session(0)
	says(t, c, asks("c", "a", "s2", wire.AgentMessage_START_QUEST))
	_, err := ends(c)
	refused(t, "one more session of an agent than there may be", err, codes.ResourceExhausted, "")
	retries(t, err)
	for _, c := range held {
		says(t, c, asks("c", "a", "s", wire.AgentMessage_STOP_QUEST))
		if _, err := ends(c); err != nil {
			t.Errorf("those before: %v", err)
		}
	}
	s.Node(0).SetLimits(admission.Limits{Rate: 0.001, Burst: 3000})
	call := func() error {
		_, err := s.gateway(0, "").RouteToolCalling(t.Context(), &wire.ToolRequest{SenderId: "c", ReceiverId: "box"})
		return err
	}
	await.True(t, "calls more often than an agent may make them are refused", func() bool { return call() != nil })
	err = call()
	refused(t, "a call more often than an agent may make it", err, codes.ResourceExhausted, "")
	retries(t, err)
	s.lists(0, "a", "box")
}

// retries reports an error that does not say when to try again.
func retries(t *testing.T, err error) {
	t.Helper()
	for _, d := range status.Convert(err).Details() {
		if r, is := d.(*errdetails.RetryInfo); is && r.GetRetryDelay().AsDuration() > 0 && r.GetRetryDelay().AsDuration() < 24*time.Hour {
			return
		}
	}
	t.Errorf("%v says not when to try again: %v", err, status.Convert(err).Details())
}
