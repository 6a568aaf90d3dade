package member_test

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/member"
)

// protocols are those that servers over HTTP speak: the newest, and the legacy one.
var protocols = map[string][]string{"newest": nil, "legacy": {"2025-11-25"}}

// shed is a tool server over HTTP that can be started again at its address.
type shed struct {
	t     *testing.T
	addr  string
	speak []string
	http  *httptest.Server
	tools *mcp.Server
	asked atomic.Int64
}

func newShed(t *testing.T, speak []string) *shed {
	t.Helper()
	h := &shed{t: t, addr: "127.0.0.1:0", speak: speak}
	h.start()
	t.Cleanup(h.kill)
	return h
}

func (h *shed) start() {
	h.t.Helper()
	h.tools = newToolsThat(h.speak)
	handler := mcp.NewStreamableHTTPHandler(func(*http.Request) *mcp.Server { return h.tools }, nil)
	h.http = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h.asked.Add(1)
		handler.ServeHTTP(w, r)
	}))
	l, err := net.Listen("tcp", h.addr)
	if err != nil {
		h.t.Fatal(err)
	}
	h.http.Listener.Close()
	h.http.Listener = l
	h.addr = l.Addr().String()
	h.http.Start()
}

// kill ends the server at once.
func (h *shed) kill() {
	h.http.Listener.Close()
	h.http.CloseClientConnections()
	for s := range h.tools.Sessions() {
		s.Close()
	}
	h.http.Close()
}

func (h *shed) config() member.Config {
	return member.Config{URL: "http://" + h.addr + "/mcp", Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}}
}

func TestAServerOverHTTPIsAMember(t *testing.T) {
	t.Parallel()
	for name, speak := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, speak), newSite(t)
			s.join(h.config())
			for tool, want := range map[string]string{
				"echo": `"{}"`, "sum": `{"sum":12345678901234567890,"b":"<"}`, "fail": fault(agora.StreamAborted, "no such file"), "refuse": fault(agora.StreamAborted, "out of paper"),
			} {
				if got := s.call(tool, `{}`); got != want {
					t.Errorf("%s: the answer is %s, want %s", tool, got, want)
				}
			}
			if got, want := s.call("long", `{"n":5000000}`), fault(agora.MessageTooLarge, "the tool's answer has more than 4194304 bytes"); got != want {
				t.Errorf("the answer is %.100s, want %s", got, want)
			}
			if got := s.call("grow", `{}`); got != `"ok"` {
				t.Fatalf("the answer is %s", got)
			}
			s.listed("grown")
		})
	}
}

func TestACallOverHTTPTellsProgressAndIsCancelled(t *testing.T) {
	t.Parallel()
	for name, speak := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, speak), newSite(t)
			s.join(h.config())
			file := s.file("orders")
			c := s.begin(await.Context(t), "work", `{"path":`+agoraQuote(file)+`}`)
			if got := s.next(c) + s.next(c); got != "sawing (1/2)\nsawing (2/2)\n" {
				t.Errorf("progress is %q", got)
			}
			note(file, "done")
			if got := s.result(c); got != `"planks"` {
				t.Errorf("the result is %s", got)
			}
			ctx, cancel := context.WithCancel(await.Context(t))
			s.begin(ctx, "hang", `{"path":`+agoraQuote(file)+`}`)
			s.there(file + ".begun")
			cancel()
			s.there(file + ".cancelled")
		})
	}
}

func TestAServerOverHTTPThatComesBackIsReachedAgain(t *testing.T) {
	t.Parallel()
	for name, speak := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, speak), newSite(t)
			s.join(h.config())
			file := s.file("hang")
			c := s.begin(await.Context(t), "hang", `{"path":`+agoraQuote(file)+`}`)
			s.there(file + ".begun")
			h.kill()
			if got := s.result(c); got != fault(agora.Unavailable, "the tool server has ended before it answered") {
				t.Errorf("the call in hand is answered %s", got)
			}
			waits := s.begin(await.Context(t), "echo", `{}`)
			s.says("the tool server can't be started again yet")
			h.start()
			if got := s.result(waits); got != `"{}"` {
				t.Errorf("a call in between is answered %s", got)
			}
			if got := s.call("grow", `{}`); got != `"ok"` {
				t.Fatalf("the answer is %s", got)
			}
			s.listed("grown") // it is told of changes again
		})
	}
}

func TestAServerThatIsNowhereIsAnError(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.start(member.Config{URL: "http://127.0.0.1:1/mcp"})
	if err := await.Recv(t, "the end", s.ended); err == nil {
		t.Error("Run = nil, want an error")
	}
}
