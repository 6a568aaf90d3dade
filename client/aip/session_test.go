package aip

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestTheInitiatorIsHeldToTheRules(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	call := newAgent(t, config(g, "alice")).Call(await.Context(t), "bob")
	is := func(about string, err, want error) {
		t.Helper()
		if !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", about, err, want)
		}
	}
	_, err := call.Receive()
	is("Receive before Start", err, ErrFree)
	is("Hold before Start", call.Hold(), ErrFree)
	is("Stop before Start", call.Stop(), ErrFree)
	for range 2 { // and it is free again
		is("Start", call.Start(Text("a")), nil)
		is("Start twice", call.Start(), ErrOccupied)
		is("Hold", call.Hold(Text("b")), nil)
		is("Stop", call.Stop(Text("c")), nil)
		is("Hold behind Stop", call.Hold(), ErrStopping)
		is("Stop twice", call.Stop(), ErrStopping)
		is("Start behind Stop", call.Start(), ErrOccupied)
		got, err := answers(call)
		if want := []string{"HOLD_RESPONSE a", "HOLD_RESPONSE b", "STOP_RESPONSE c"}; err != nil || !slices.Equal(got, want) {
			t.Errorf("the answers are %q, %v, want %q", got, err, want)
		}
		is("Hold behind the end", call.Hold(), ErrFree)
		is("Stop behind the end", call.Stop(), ErrFree)
		_, err = call.Receive()
		is("Receive behind the end", err, io.EOF)
	}
	err = call.Send(&Message{SessionStatus: HoldResponse})
	if agora.AsError(err).Code != agora.InvalidRequest {
		t.Errorf("a response by the initiator: %v, want INVALID_REQUEST", err)
	}
	is("Close", call.Close(), nil)
	is("Start behind Close", call.Start(), ErrClosed)
}

func TestTheAnsweringAgentIsHeldToTheRules(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	var seen []error
	startAgent(t, config(g, "bob"), func(_ context.Context, s *Session) error {
		seen = append(seen, s.Finish(), s.Send(&Message{SessionStatus: HoldQuest}))
		for range s.Messages() {
		}
		_, err := s.Receive()
		seen = append(seen, err, s.Finish(Text("end")), s.Finish(), s.Reply())
		return nil
	})
	got, err := answers(newAgent(t, config(g, "alice")).askCall(await.Context(t), "bob"))
	if err != nil || !slices.Equal(got, []string{"STOP_RESPONSE end"}) {
		t.Errorf("the answers are %q, %v", got, err)
	}
	for i, want := range []error{ErrNotEnded, nil, io.EOF, nil, ErrFinished, ErrFinished} {
		if i == 1 {
			if e, ok := errors.AsType[*agora.Error](seen[i]); !ok || e.Code != agora.InvalidRequest {
				t.Errorf("a quest by who answers: %v, want INVALID_REQUEST", seen[i])
			}
		} else if !errors.Is(seen[i], want) {
			t.Errorf("%d: %v, want %v", i, seen[i], want)
		}
	}
}

func TestASessionWaitsForItsInitiatorToEndIt(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), func(_ context.Context, s *Session) error { return s.Reply(Text("that is all")) })
	call := newAgent(t, config(g, "alice")).Call(await.Context(t), "bob")
	defer call.Close()
	call.Start()
	if m, err := call.Receive(); err != nil || m.GetSessionStatus() != HoldResponse {
		t.Fatalf("the answer is %v, %v", m, err)
	}
	for range 3 {
		if err := call.Hold(); err != nil {
			t.Fatal(err)
		}
	}
	call.Stop()
	if got, err := answers(call); err != nil || !slices.Equal(got, []string{"STOP_RESPONSE "}) {
		t.Errorf("the end is %q, %v", got, err)
	}
}

func TestAnAgentHasEachSessionOnce(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	cfg := config(g, "bob")
	cfg.MaxSessions = 1
	startAgent(t, cfg, echo)
	s, err := rawGateway(t, g).RouteAgentCalling(await.Context(t))
	if err != nil {
		t.Fatal(err)
	}
	s.Send(quest(StartQuest, "bob"))
	if _, err := s.Recv(); err != nil {
		t.Fatal(err)
	}
	second, err := rawGateway(t, g).RouteAgentCalling(await.Context(t))
	_, err = speak(second, err, quest(StartQuest, "bob"))
	isStatus(t, "the same session", err, codes.FailedPrecondition, "")
	_, err = answers(newAgent(t, config(g, "alice")).askCall(await.Context(t), "bob"))
	isStatus(t, "one too many", err, codes.ResourceExhausted, "")
	if all, err := speak(s, nil, quest(StopQuest, "bob")); err != nil || len(all) != 1 {
		t.Errorf("the first session ends with %v, %v", all, err)
	}
	lists(t, g, "bob", true)
}

func TestASessionBeginsAnewAsSoonAsItsLastAnswerHasCome(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), echo)
	alice := newAgent(t, config(g, "alice"))
	for about, call := range map[string]*Call{"through the gateway": alice.Call(await.Context(t), "bob"), "at the agent": alice.CallAt(await.Context(t), bob.Address(), "bob")} {
		for range 50 {
			if err := errors.Join(call.Start(), call.Stop()); err != nil {
				t.Fatal(err)
			}
			for m, err := range call.Messages() {
				if err != nil {
					t.Fatalf("%s: %v", about, err)
				}
				if m.GetSessionStatus() == StopResponse {
					break
				}
			}
		}
		call.Close()
	}
	lists(t, g, "bob", true)
}

func TestASessionThatIsCutShortIsNotTakenForWhole(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	rawAgent(t, g, "bob", func(s grpc.BidiStreamingServer[Message, Message]) error {
		s.Recv()
		return s.Send(&Message{SessionStatus: HoldResponse})
	})
	call := newAgent(t, config(g, "alice")).Call(await.Context(t), "bob")
	defer call.Close()
	call.Start()
	if got, err := answers(call); len(got) != 1 || !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Errorf("the session is %q, %v, want %v", got, err, io.ErrUnexpectedEOF)
	}
}

func TestMessagesOfAllSessionsAreReceivedInOnePlace(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	bob := startAgent(t, config(g, "bob"), nil)
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	var calls []*Call
	for i := range 3 {
		calls = append(calls, caller.askCall(ctx, "bob"))
		defer calls[i].Close()
	}
	for range 6 {
		s, m, err := bob.Receive(ctx)
		if err != nil {
			t.Fatal(err)
		}
		answer := &Message{SessionStatus: HoldResponse, TaskInfo: NewTask("parent"), Content: []*ContentItem{Text("for " + s.ID())}}
		if m.GetSessionStatus() == StopQuest {
			answer.SessionStatus = StopResponse
		}
		if err := s.Send(answer); err != nil || answer.GetReplyToMessageId() != m.GetMessageId() {
			t.Errorf("%v, in reply to %q, want %q", err, answer.GetReplyToMessageId(), m.GetMessageId())
		}
	}
	for _, c := range calls {
		if got, err := answers(c); err != nil || !slices.Equal(got, []string{"HOLD_RESPONSE for " + c.ID(), "STOP_RESPONSE for " + c.ID()}) {
			t.Errorf("%s is answered %q, %v", c.ID(), got, err)
		}
	}
	ctx, cancel := context.WithCancel(ctx)
	cancel()
	if _, _, err := bob.Receive(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("Receive ends with %v", err)
	}
}

func TestAnswersAreCollected(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	startAgent(t, config(g, "bob"), echo)
	caller, ctx := newAgent(t, config(g, "alice")), await.Context(t)
	status := func(m *Message) (string, error) { return m.GetSessionStatus().String(), nil }
	text := func(m *Message) (string, error) { return TextOf(m.GetContent()), nil }
	call := caller.askCall(ctx, "bob")
	defer call.Close()
	if got, err := Collect(call, status, text); err != nil || fmt.Sprint(got) != "[HOLD_RESPONSE hi STOP_RESPONSE ]" {
		t.Errorf("collected is %q, %v", got, err)
	}
	broken := errors.New("no")
	second := caller.askCall(ctx, "bob")
	defer second.Close()
	if got, err := Collect(second, status, func(*Message) (string, error) { return "", broken }); !errors.Is(err, broken) || len(got) != 1 {
		t.Errorf("collected is %q, %v, want one and %v", got, err, broken)
	}
	_, err := Collect(caller.askCall(ctx, "nobody"), status)
	isStatus(t, "nobody", err, codes.NotFound, "Receiver not found")
	for m, err := range caller.Ask(ctx, "bob", Text("one")) {
		if err != nil || TextOf(m.GetContent()) != "one" {
			t.Errorf("asked, bob says %v, %v", m, err)
		}
		break
	}
	for _, err := range newAgent(t, Config{ID: "alone"}).Ask(ctx, "bob") {
		if !errors.Is(err, errNoGateway) {
			t.Errorf("without a gateway: %v, want %v", err, errNoGateway)
		}
	}
}

func TestNodesCallEachOtherWithoutAGateway(t *testing.T) {
	t.Parallel()
	bob := startAgent(t, config(nil, "bob"), echo)
	box := startToolbox(t, config(nil, "box"), map[string]func(context.Context, string) (any, error){
		"echo": func(_ context.Context, args string) (any, error) { return args, nil },
	})
	alice, ctx := newAgent(t, config(nil, "alice")), await.Context(t)
	call := alice.CallAt(ctx, bob.Address(), "bob")
	defer call.Close()
	call.Start(Image([]byte{1, 2}))
	call.Stop()
	if got, err := answers(call); err != nil || len(got) != 2 {
		t.Errorf("bob answers %q, %v", got, err)
	}
	tools := alice.ToolsAt(box.Address(), "box")
	for range 2 {
		if resp, err := tools.Call(ctx, "echo", []int{1}); err != nil || TextOf(resp.GetContent()) != "[1]" || resp.GetSenderId() != "box" || resp.GetReceiverId() != "alice" {
			t.Errorf("the tool answers %v, %v", resp, err)
		}
	}
	tools.Close()
	if _, err := tools.Call(ctx, "echo", nil); !errors.Is(err, ErrClosed) {
		t.Errorf("a closed client calls with %v", err)
	}
	bob.Close()
	gone := alice.CallAt(ctx, bob.Address(), "bob")
	defer gone.Close()
	err := gone.Start()
	if err == nil {
		_, err = gone.Receive()
	}
	isStatus(t, "who is gone", err, codes.Unavailable, "")
}

func TestACloseWaitsForWhatIsUnderWay(t *testing.T) {
	t.Parallel()
	g := startGateway(t, GatewayConfig{})
	cfg := config(g, "bob")
	cfg.Grace = time.Hour
	begun, goOn := make(chan bool, 1), make(chan bool)
	bob := startAgent(t, cfg, func(ctx context.Context, s *Session) error {
		begun <- true
		<-goOn
		return echo(ctx, s)
	})
	call := newAgent(t, config(g, "alice")).askCall(await.Context(t), "bob")
	defer call.Close()
	await.Recv(t, "the session", begun)
	closed := make(chan error, 1)
	go func() { closed <- bob.Close() }()
	lists(t, g, "bob", false)
	close(goOn)
	if got, err := answers(call); err != nil || len(got) != 2 {
		t.Errorf("bob answers %q, %v", got, err)
	}
	await.Recv(t, "the end of bob", closed)
}
