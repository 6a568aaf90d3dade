package main

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire"
)

// rewrite puts other text into a file.
func rewrite(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

const letAll = `
rules:
  - {name: all, who: {names: ["*"]}, agents: ["*"], send: ["*"]}
`

func TestAChangedPolicyIsTakenUpAndABadOneIsNot(t *testing.T) {
	t.Parallel()
	path := write(t, "policy.yaml", letAll)
	d := startDev(t, "--policy", path, "--log.level", "info")
	a := connect(t, d.public[0]+"?agent_id=a")
	a.hear("agent.registered")
	a.say(`{"type":"send","id":"1","to":"a","payload":1}`)
	a.hearBoth("message", "receipt")
	rewrite(t, path, "rules: [{name: none, who: everybody}]")
	await.True(t, "the bad one is told", func() bool { return strings.Contains(d.stderr.String(), "what it said before stays in force") })
	a.say(`{"type":"send","id":"2","to":"a","payload":1}`)
	a.hearBoth("message", "receipt")
	rewrite(t, path, strings.ReplaceAll(letAll, `send: ["*"]`, `send: ["b"]`))
	await.True(t, "the good one is told", func() bool { return strings.Contains(d.stderr.String(), "the policy has changed") })
	a.say(`{"type":"send","id":"3","to":"a","payload":1}`)
	if f := a.hear("error"); f.Code != "FORBIDDEN" || f.RequestID != "3" || !strings.Contains(f.Message, "no rule allows it") {
		t.Errorf("answered %+v, want FORBIDDEN and why", f)
	}
	rewrite(t, path, strings.ReplaceAll(letAll, `agents: ["*"]`, `agents: ["b"]`))
	if f := a.hear("error"); f.Code != "FORBIDDEN" { // without its saying anything
		t.Errorf("told %+v, want FORBIDDEN", f)
	}
}

func TestChangedLimitsAreTakenUpAndTheRestIsToldToWait(t *testing.T) {
	t.Parallel()
	path := write(t, "agora.yaml", "limits: {rate: 1000, spaces: 7}\nsession.grace: 5s\n")
	d := startDev(t, "--config", path, "--log.level", "info", "--limits.spaces", "3")
	a := connect(t, d.public[0]+"?agent_id=a")
	a.hear("agent.registered")
	rewrite(t, path, "limits: {rate: -1}\n")
	await.True(t, "the bad one is told", func() bool { return strings.Contains(d.stderr.String(), "limits.rate can't be negative") })
	rewrite(t, path, "limits: {rate: 500, spaces: 9}\nsession.grace: 6s\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	await.True(t, "the change is told", func() bool { return strings.Contains(d.stderr.String(), "setting=limits.rate from=1000 to=500") })
	await.True(t, "what must wait is told", func() bool {
		return strings.Contains(d.stderr.String(), "it is started again\" edge=edge-0 setting=session.grace")
	})
	if strings.Contains(d.stderr.String(), "setting=limits.spaces") {
		t.Error("what was given on the command line is said to have changed")
	}
	for k, want := range []string{`"space.joined"`, `"space.joined"`, `"space.joined"`, "this agent has as many memberships in spaces as it may"} {
		if got := a.answer(`{"type":"space.join","id":"%s","space":"s%[1]s"}`, fmt.Sprint("j", k)); !strings.Contains(got, want) {
			t.Errorf("space %d: %s, want %s", k, got, want)
		}
	}
	rewrite(t, path, "limits: {rate: 0.001, spaces: 9}\nsession.grace: 6s\n")
	n := 0
	await.True(t, "the new rate holds", func() bool {
		n++
		return strings.Contains(a.answer(`{"type":"send","id":"%s","to":"a","payload":1}`, fmt.Sprint("m", n)), "RATE_LIMITED")
	})
}

// answer says something under an id, and returns what answers it.
func (a *agent) answer(frame, id string) string {
	a.t.Helper()
	a.say(fmt.Sprintf(frame, id))
	for {
		_, b, err := a.ReadMessage()
		if err != nil {
			a.t.Fatal(err)
		}
		var f wire.Frame
		if wire.DecodeAnswer(slices.Clone(b), &f) == nil && (f.RequestID == id || f.ID == id) {
			return string(b)
		}
	}
}
