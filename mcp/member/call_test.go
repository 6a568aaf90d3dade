package member_test

import (
	"context"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/member"
)

func TestAServersToolsStandInTheDirectoryUnderItsName(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	a, err := s.caller.AgentCard(await.Context(t), "tool shed")
	if err != nil {
		t.Fatal(err)
	}
	if a.Name != "The shed" || a.Type != "mcp" || a.Description != "Has tools." || len(a.Tools) != 13 {
		t.Errorf("the directory has %+v", a)
	}
	echo := s.listed("echo")
	if echo.Description != "does echo" || string(echo.Schema) != `{"type":"object","properties":{"n":{"type":"number"}}}` {
		t.Errorf("echo is %+v, schema %s", echo, echo.Schema)
	}
}

func TestAResultIsAnswered(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	for _, c := range []struct{ about, tool, arguments, want string }{
		{"text", "echo", `{"n": 1.0,"s":"é"}`, `"{\"n\":1.0,\"s\":\"é\"}"`},
		{"JSON, as it was written", "sum", `{}`, `{"sum":12345678901234567890,"b":"\u003c"}`},
		{"bytes", "picture", `{}`, `{"media":"image/png","data":"iVBORw=="}`},
		{"several contents", "both", `{}`, `{"content":[{"type":"text","text":"a"},{"type":"image","mimeType":"image/png","data":"Yg=="}]}`},
		{"a tool that fails", "fail", `{}`, fault(agora.StreamAborted, "no such file")},
		{"a server that refuses", "refuse", `{}`, fault(agora.StreamAborted, "out of paper")},
		{"more than a line", "long", `{"n":5000000}`, fault(agora.MessageTooLarge, "the tool's answer has more than 4194304 bytes")},
	} {
		if got := s.call(c.tool, c.arguments); got != c.want {
			t.Errorf("%s: the answer is %s, want %s", c.about, got, c.want)
		}
	}
}

func TestALongResultComesInPieces(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	c := s.begin(await.Context(t), "long", `{"n":2700000}`)
	var got strings.Builder
	for piece := s.next(c); piece != ""; piece = s.next(c) {
		got.WriteString(piece)
	}
	if want := strings.Repeat("0123456é", 300000); got.String() != want {
		t.Errorf("%d bytes have come, want %d", got.Len(), len(want))
	}
	if end := s.result(c); end != "" {
		t.Errorf("the end has the payload %s", end)
	}
}

func TestProgressComesInPiecesBeforeTheResult(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	for orders, want := range map[string]string{
		"done": `"planks"`, "fail": fault(agora.StreamAborted, "the saw broke"), "+": `{"result_at":26}`,
	} {
		file := s.file("orders-" + orders)
		c := s.begin(await.Context(t), "work", `{"path":`+agoraQuote(file)+`}`)
		if got := s.next(c) + s.next(c); got != "sawing (1/2)\nsawing (2/2)\n" {
			t.Errorf("progress is %q", got)
		}
		note(file, orders)
		if got := s.result(c); got != want {
			t.Errorf("told to %s the result is %s, want %s", orders, got, want)
		}
	}
}

func TestWhoGivesACallUpCancelsIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	ctx, cancel := context.WithCancel(await.Context(t))
	file := s.file("hang")
	s.begin(ctx, "hang", `{"path":`+agoraQuote(file)+`}`)
	s.there(file + ".begun")
	cancel()
	s.there(file + ".cancelled")
	if got := s.call("echo", `{}`); got != `"{}"` {
		t.Errorf("the next call is answered %s", got)
	}
}

func TestACallThatIsNotAnsweredInTimeEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cfg := s.stdio("tools")
	cfg.CallTimeout = 1
	s.join(cfg)
	file := s.file("hang")
	if got := s.call("hang", `{"path":`+agoraQuote(file)+`}`); got != fault(agora.Timeout, "the tool did not answer in 1ns") {
		t.Errorf("the answer is %s", got)
	}
}

func TestTooManyCallsAreRefusedAndOthersGoOn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cfg := s.stdio("tools")
	cfg.MaxCalls = 2
	s.join(cfg)
	file := s.file("hang")
	s.begin(await.Context(t), "hang", `{"path":`+agoraQuote(file)+`}`)
	s.there(file + ".begun")
	if got := s.call("echo", `{}`); got != `"{}"` {
		t.Errorf("beside a call that hangs another is answered %s", got)
	}
	second, cancel := context.WithCancel(await.Context(t))
	s.begin(second, "hang", `{"path":`+agoraQuote(file+"2")+`}`)
	s.there(file + "2.begun")
	if got := s.call("echo", `{}`); got != fault(agora.RateLimited, "the tool server has too many calls in hand") {
		t.Errorf("the third call is answered %s", got)
	}
	cancel()
	await.True(t, "a call is taken again", func() bool { return s.call("echo", `{}`) == `"{}"` })
}

func TestOtherRequestsAreToldWhatTheAgentCan(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	if err := s.caller.Send(await.Context(t), s.agent, map[string]string{"text": "hello"}); err != nil {
		t.Fatal(err)
	}
	r, err := s.caller.Request(await.Context(t), s.agent, map[string]string{"text": "hello?"})
	if err != nil {
		t.Fatal(err)
	}
	got := string(r.Payload)
	if !strings.Contains(got, `"INVALID_REQUEST"`) || !strings.Contains(got, "nothing but calls of its tools: both, echo") || !strings.Contains(got, ", …") || strings.Contains(got, "work") {
		t.Errorf("a request is answered %s", got)
	}
	s.says("a message that is no call is dropped")
}

func TestAServerOfTheLegacyProtocolIsReached(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.agent = "old"
	s.start(s.stdio("old"))
	s.listed("now")
	if got := s.call("now", `{}`); got != `"noon"` {
		t.Errorf("the answer is %s", got)
	}
}

func TestWhatMakesNoSenseIsRefused(t *testing.T) {
	t.Parallel()
	for about, cfg := range map[string]member.Config{
		"nothing": {},
		"both":    {Command: []string{"x"}, URL: "http://127.0.0.1:1"},
		"no URL":  {URL: "127.0.0.1:1"},
		"the cluster": func() member.Config {
			c := member.Config{URL: "http://127.0.0.1:1"}
			c.Client.Agent = "agora"
			return c
		}(),
		"negative calls": {URL: "http://127.0.0.1:1", MaxCalls: -1},
		"negative time":  {URL: "http://127.0.0.1:1", CallTimeout: -1},
	} {
		if _, err := member.New(cfg); agora.AsError(err) == nil || agora.AsError(err).Code != agora.InvalidRequest {
			t.Errorf("%s: New = %v, want INVALID_REQUEST", about, err)
		}
	}
}

func agoraQuote(s string) string { return `"` + strings.ReplaceAll(s, `\`, `\\`) + `"` }
