package member_test

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/mcp/member"
)

// protocols are those that servers over HTTP speak: the newest, and the legacy one alone.
var protocols = map[string]string{"newest": "http", "legacy": "http-legacy"}

// shed is a tool server over HTTP, a process that can be started again at its address.
type shed struct {
	t    *testing.T
	how  string
	addr string
	cmd  *exec.Cmd
}

func newShed(t *testing.T, how string) *shed {
	t.Helper()
	h := &shed{t: t, how: how, addr: "127.0.0.1:0"}
	h.start()
	t.Cleanup(h.kill)
	return h
}

// start starts the server, and returns once it listens.
func (h *shed) start() {
	h.t.Helper()
	h.cmd = exec.Command(os.Args[0])
	h.cmd.Env = append(os.Environ(), serverEnv+"="+h.how+"="+h.addr)
	h.cmd.Stderr = os.Stderr
	out, err := h.cmd.StdoutPipe()
	if err != nil {
		h.t.Fatal(err)
	}
	if err := h.cmd.Start(); err != nil {
		h.t.Fatal(err)
	}
	line, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		h.t.Fatalf("the tool server says %q, %v", line, err)
	}
	h.addr = strings.TrimSpace(line)
}

// kill ends the server with SIGKILL.
func (h *shed) kill() {
	_ = h.cmd.Process.Kill()
	_ = h.cmd.Wait()
}

func (h *shed) config() member.Config {
	return member.Config{URL: "http://" + h.addr + "/mcp", Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 20 * time.Millisecond}}
}

func TestAServerOverHTTPIsAMember(t *testing.T) {
	t.Parallel()
	for name, how := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, how), newSite(t)
			s.join(h.config())
			for tool, want := range map[string]string{
				"echo": `"{}"`, "sum": `{"sum":12345678901234567890,"b":"\u003c"}`, "fail": fault(agora.StreamAborted, "no such file"), "refuse": fault(agora.StreamAborted, "out of paper"),
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
	for name, how := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, how), newSite(t)
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
	for name, how := range protocols {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h, s := newShed(t, how), newSite(t)
			s.join(h.config())
			file := s.file("hang")
			c := s.begin(await.Context(t), "hang", `{"path":`+agoraQuote(file)+`}`)
			s.there(file + ".begun")
			h.kill()
			if got := s.result(c); !strings.HasPrefix(got, `{"error":{"code":"UNAVAILABLE"`) {
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
			s.listed("grown") // it learns of changes again
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
