//go:build unix

package member_test

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/await"
)

// kill ends the server of a member with SIGKILL.
func (s *site) kill() (pid string) {
	s.t.Helper()
	pid = strings.Trim(s.call("pid", `{}`), `"`)
	n, err := strconv.Atoi(pid)
	if err != nil {
		s.t.Fatalf("the server's process is %s", pid)
	}
	if err := syscall.Kill(n, syscall.SIGKILL); err != nil {
		s.t.Fatal(err)
	}
	return pid
}

func TestAServerThatDiesIsStartedAgainAndItsCallsEnd(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	for range 3 {
		file := s.file("hang")
		c := s.begin(await.Context(t), "hang", `{"path":`+agoraQuote(file)+`}`)
		s.there(file + ".begun")
		os.Remove(file + ".begun")
		old := s.kill()
		if got := s.result(c); got != fault(agora.Unavailable, "the tool server has ended before it answered") {
			t.Errorf("the call in hand is answered %s", got)
		}
		if _, listed := s.tools()["echo"]; !listed {
			t.Error("the directory has lost the tools")
		}
		if now := s.call("pid", `{}`); now == `"`+old+`"` || strings.Contains(now, "error") {
			t.Errorf("the next call is answered by %s, where %s has ended", now, old)
		}
	}
	s.says("signal: killed")
}

func TestAServerThatDoesNotComeBackIsTriedOnAndCallsSayIt(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cfg := s.stdio("once=" + s.file("there"))
	cfg.RestartWait, cfg.Backoff = time.Millisecond, client.Backoff{Min: time.Millisecond, Max: 2 * time.Millisecond}
	s.join(cfg)
	s.kill()
	await.True(t, "calls say that it is away", func() bool {
		return s.call("echo", `{}`) == fault(agora.Unavailable, "the tool server has ended, and is not there again yet")
	})
	s.says("the tool server can't be started again yet")
	s.says("exit status 4")
	if _, listed := s.tools()["echo"]; !listed {
		t.Error("the directory has lost the tools")
	}
	os.Remove(s.file("there"))
	await.True(t, "it is there again", func() bool { return s.call("echo", `{}`) == `"{}"` })
}

func TestACommandThatIsNoServerIsAnError(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	for how, want := range map[string]string{"dies": "the tool server has ended: exit status 3", "mute": "the tool server does not answer"} {
		cfg := s.stdio(how)
		if how == "mute" {
			cfg.StartTimeout, cfg.Grace = 200*time.Millisecond, time.Millisecond
		}
		s.start(cfg)
		if err := await.Recv(t, "the end of "+how, s.ended); err == nil || err.Error() != want {
			t.Errorf("Run = %v, want %s", err, want)
		}
	}
	s.says("no configuration")
	cfg := s.stdio("")
	cfg.Command = []string{"/there/is/none"}
	s.start(cfg)
	if err := await.Recv(t, "the end", s.ended); err == nil || !strings.Contains(err.Error(), "the command can't be started") || !strings.Contains(err.Error(), "/there/is/none") {
		t.Errorf("Run = %v", err)
	}
}

func TestOneIdIsOneMembers(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	first := s.stop
	s.start(s.stdio("tools"))
	if err := await.Recv(t, "the end of the second", s.ended); agora.AsError(err) == nil || agora.AsError(err).Code != agora.AgentExists {
		t.Errorf("Run = %v, want AGENT_EXISTS", err)
	}
	if got := s.call("echo", `{}`); got != `"{}"` {
		t.Errorf("the first answers %s", got)
	}
	first()
}

func TestTheEndTakesTheServerAndItsChildren(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	cfg := s.stdio("stays=" + s.file("ids"))
	cfg.Grace = 10 * time.Millisecond
	cfg.Client.Agent = "shed"
	s.agent = "shed"
	s.join(cfg)
	file := s.file("hang")
	c := s.begin(await.Context(t), "hang", `{"path":`+agoraQuote(file)+`}`)
	s.there(file + ".begun")
	s.stop()
	if err := await.Recv(t, "the end", s.ended); err != nil {
		t.Errorf("Run = %v", err)
	}
	if got := s.result(c); got != fault(agora.Unavailable, "the agent is going away") {
		t.Errorf("the call in hand is answered %s", got)
	}
	var server, child int
	b, err := os.ReadFile(s.file("ids"))
	if err != nil {
		t.Fatal(err)
	}
	fmt.Sscan(string(b), &server, &child)
	if err := syscall.Kill(server, 0); err == nil {
		t.Error("the server lives")
	}
	await.True(t, "the end of its child", func() bool { return gone(child) })
	await.True(t, "the agent has left", func() bool {
		_, err := s.caller.AgentCard(context.Background(), "shed")
		return err != nil
	})
}

// gone reports whether a process has ended, though nobody may have asked how.
func gone(pid int) bool {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	return err != nil || strings.Contains(string(b), ") Z ")
}

func TestToolsThatChangeAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	if got := s.call("grow", `{}`); got != `"ok"` {
		t.Fatalf("the answer is %s", got)
	}
	s.listed("grown")
	if _, listed := s.tools()["env"]; listed {
		t.Error("a tool that was removed is listed")
	}
	await.True(t, "the new tool is called", func() bool { return s.call("grown", `{}`) == `"grown"` })
	s.kill()
	await.True(t, "the tools of the next start are told", func() bool { _, listed := s.tools()["env"]; return listed })
}

func TestNonsenseOnStdoutEndsNothingAndStderrIsLogged(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	s.join(s.stdio("tools"))
	if got := s.call("nonsense", `{}`); got != `"sense"` {
		t.Errorf("the answer is %s", got)
	}
	if n := strings.Count(s.log.String(), "has written what is no message"); n != 1 {
		t.Errorf("the log says it %d times, want once", n)
	}
	s.says(`level=INFO msg="said on stderr" source=stderr`)
}

func TestAServerGetsNoEnvironmentButWhatIsNamed(t *testing.T) {
	t.Setenv("AGORA_TEST_SECRET", "s3cret")
	s := newSite(t)
	s.join(s.stdio("tools"))
	got := s.call("env", `{}`)
	if want := fmt.Sprintf(`"PATH=%s\n%s=tools\nNAMED=yes"`, os.Getenv("PATH"), serverEnv); got != want {
		t.Errorf("its environment is %s, want %s", got, want)
	}
}
