package main

import (
	"os"
	"strings"
	"syscall"
	"testing"

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
	until(t, "the bad one is told", func() bool { return strings.Contains(d.stderr.String(), "what it said before stays in force") })
	a.say(`{"type":"send","id":"2","to":"a","payload":1}`)
	a.hearBoth("message", "receipt")
	rewrite(t, path, strings.ReplaceAll(letAll, `send: ["*"]`, `send: ["b"]`))
	until(t, "the good one is told", func() bool { return strings.Contains(d.stderr.String(), "the policy has changed") })
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
	until(t, "the bad one is told", func() bool { return strings.Contains(d.stderr.String(), "limits.rate can't be negative") })
	rewrite(t, path, "limits: {rate: 1, spaces: 9}\nsession.grace: 6s\n")
	if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	until(t, "the change is told", func() bool { return strings.Contains(d.stderr.String(), "setting=limits.rate from=1000 to=1") })
	until(t, "what must wait is told", func() bool {
		return strings.Contains(d.stderr.String(), "it is started again\" edge=edge-0 setting=session.grace")
	})
	if strings.Contains(d.stderr.String(), "setting=limits.spaces") {
		t.Error("what was given on the command line is said to have changed")
	}
	limited := func() bool {
		a.say(`{"type":"send","id":"m","to":"a","payload":1}`)
		for {
			_, b, err := a.ReadMessage()
			if err != nil {
				t.Fatal(err)
			}
			var f wire.Frame
			if wire.DecodeAnswer(b, &f) == nil && f.RequestID == "m" {
				return f.Code == "RATE_LIMITED"
			}
		}
	}
	until(t, "the new rate holds", limited)
	for k := range 4 {
		until(t, "a space is joined, or too many are", func() bool {
			a.say(`{"type":"space.join","id":"j","space":"s` + string(rune('a'+k)) + `"}`)
			for {
				_, b, err := a.ReadMessage()
				if err != nil {
					t.Fatal(err)
				}
				if strings.Contains(string(b), "at most 3 spaces") != (k == 3) && strings.Contains(string(b), "at most") {
					t.Fatalf("space %d: %s", k, b)
				}
				if strings.Contains(string(b), `"space.joined"`) || strings.Contains(string(b), "at most 3") {
					return true
				}
				if strings.Contains(string(b), `"RATE_LIMITED"`) {
					return false
				}
			}
		})
	}
}

func TestReloadableSettingsAreSettings(t *testing.T) {
	known := strings.Join(settingNames(newEdge()), "\n") + "\n"
	for _, name := range reloadable {
		if !strings.Contains(known, name+"\n") {
			t.Errorf("%s is no setting", name)
		}
	}
}
