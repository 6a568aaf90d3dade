package main

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/wire/aip"
)

func TestNodesAreListedAndTheirToolsCalled(t *testing.T) {
	t.Parallel()
	d := startDev(t, "--edges", "2")
	at := toolbox(t)
	if _, err := gatewayAt(t, d.grpc[0]).RegisterTool(await.Context(t), boxed("box", at)); err != nil {
		t.Fatal(err)
	}
	connect(t, d.public[0]+"?agent_id=bob").hear("agent.registered") // is no node
	ok := func(args ...string) string {
		t.Helper()
		status, stdout, stderr := command(t, append(args, "--url", d.public[1])...)
		if status != 0 {
			t.Errorf("agora %q ended with %d: %s", args, status, stderr)
		}
		return stdout
	}
	await.True(t, "the node is listed", func() bool { return strings.Contains(ok("nodes"), "box") })
	if got, want := ok("nodes"), []string{"ID", "KIND", "DOMAIN", "ADDRESS", "NAME", "box", aip.TypeToolbox, "voices", at, "Loud"}; strings.Join(strings.Fields(got), " ") != strings.Join(want, " ") {
		t.Errorf("agora nodes prints\n%s", got)
	}
	for _, want := range []string{`"id":"box"`, `"kind":"toolbox"`, `"address":"` + at + `"`, `"domain":"voices"`, `"dialect":"aip"`, `"tools":[{"name":"shout"`} {
		if got := ok("nodes", "--json"); !strings.Contains(got, want) || strings.Count(got, "\n") != 1 {
			t.Errorf("agora nodes --json prints %s, want %s", got, want)
		}
	}
	if got := ok("nodes", "--domain", "elsewhere", "--json"); got != "" {
		t.Errorf("of a domain without nodes: %s", got)
	}
	if got := ok("tools"); !strings.Contains(got, "shout") {
		t.Errorf("agora tools prints\n%s", got)
	}
	if got := ok("call", "--from", "al", "--to", "box", "shout", `{"a":"b"}`); got != "{\"A\":\"B\"}\n" {
		t.Errorf("agora call prints %q", got)
	}
}
