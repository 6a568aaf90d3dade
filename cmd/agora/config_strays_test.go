package main

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
)

func TestMistypedVariablesAreRefusedLikeMistypedKeys(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ variable, args, want string }{
		{"AGORA_EDGE_LAESE=5s", "edge --auth none", "AGORA_EDGE_LAESE is no setting: do you mean AGORA_EDGE_LEASE?"},
		{"AGORA_NATS_URLS=nats://x", "edge --auth none", "AGORA_NATS_URLS is no setting: do you mean AGORA_NATS_URL?"},
		{"AGORA_EDGS=3", "dev", "AGORA_EDGS is no setting: do you mean AGORA_EDGES?"},
	} {
		t.Run(c.variable, func(t *testing.T) {
			t.Parallel()
			out, status := inProcess(t, []string{c.variable}, append(strings.Fields(c.args), "--addr", "256.0.0.1:1")...)
			if status != exit.Usage || !strings.Contains(out, c.want) {
				t.Errorf("agora %s ended with %d: %s; want %d, %q", c.args, status, out, exit.Usage, c.want)
			}
			if !strings.HasPrefix(c.args, "edge") { // whose settings are checked
				return
			}
			if out, status := inProcess(t, []string{c.variable}, "config", "check", "--auth", "none"); status != exit.Error || !strings.Contains(out, c.want[:20]) {
				t.Errorf("agora config check ended with %d: %s; want %d", status, out, exit.Error)
			}
		})
	}
}

// A command without flags reads no variables.
func TestVariablesAreNoMatterToCommandsThatReadNone(t *testing.T) {
	t.Parallel()
	for _, args := range []string{"help listen", "config", "version", "mailbox", "space"} {
		if out, status := inProcess(t, []string{"AGORA_APP_ID=x", "AGORA_TOKNE=x"}, strings.Fields(args)...); status == 2 && strings.Contains(out, "panic") {
			t.Errorf("agora %s ends with %d: %s", args, status, out)
		}
	}
}

// A variable that is near to no setting may be there for another program, as AGORA_APP_ID is for the SDK of a company
// of that name.
func TestVariablesThatAreNearToNoSettingAreToldAlone(t *testing.T) {
	t.Parallel()
	for _, v := range []string{"AGORA_APP_ID=8d3f", "AGORA_APP_CERTIFICATE=x", "AGORA_CUSTOMER_SECRET=x", "AGORA_COMPLETELY_OTHER=", "AGORA_HELP=1"} {
		name, _, _ := strings.Cut(v, "=")
		want := name + " is no setting, and left alone"
		for _, args := range []string{
			"edge --auth none --addr 256.0.0.1:1", "dev --addr 256.0.0.1:1", "mcp join --url http://127.0.0.1:1/ --max-calls 0", "sidecar --agent-url http://127.0.0.1:1 --id x --log.level loud",
			"config check --auth none", "edge --auth none --log.format json --addr 256.0.0.1:1",
		} {
			out, status := inProcess(t, []string{v}, strings.Fields(args)...)
			if !strings.Contains(out, want) || status == exit.Usage && !strings.HasPrefix(args, "sidecar") && !strings.HasPrefix(args, "mcp") {
				t.Errorf("with %s agora %s ended with %d: %s; want to be told %q", v, args, status, out, want)
			}
			if strings.HasPrefix(args, "config") && status != 0 {
				t.Errorf("with %s the settings are not valid: %s", v, out)
			}
			if strings.Contains(args, "json") && strings.Contains(out, "\nagora: ") {
				t.Errorf("with %s a log of JSON has %s", v, out)
			}
		}
	}
}

func TestVariablesOfOthersStopNoEdge(t *testing.T) {
	t.Parallel()
	others := []string{
		// What verbs, tests and compose read.
		"AGORA_URL=ws://x", "AGORA_TOKEN=x", "AGORA_TOKEN_FILE=x", "AGORA_CA=x", "AGORA_EDGES=3", "AGORA_ADMIN=http://x", "AGORA_CONFIG=",
		"AGORA_TEST_PATIENCE=30s", "AGORA_SABOTAGE=fence", "AGORA_SABOTAGE_CLOCK=-1h", "AGORA_TOKENS=x", "AGORA_NATS_ADMIN_PASSWORD=x", "AGORA_VERSION=x",
		// What Kubernetes tells of Services called agora, agora-admin and agora-nats.
		"AGORA_SERVICE_HOST=10.0.0.1", "AGORA_SERVICE_PORT=80", "AGORA_SERVICE_PORT_WS=80", "AGORA_PORT=tcp://10.0.0.1:80",
		"AGORA_PORT_80_TCP=tcp://10.0.0.1:80", "AGORA_PORT_80_TCP_PROTO=tcp", "AGORA_PORT_80_TCP_PORT=80", "AGORA_PORT_80_TCP_ADDR=10.0.0.1",
		"AGORA_ADMIN_SERVICE_HOST=10.0.0.1", "AGORA_ADMIN_PORT=tcp://10.0.0.1:9100", "AGORA_NATS_SERVICE_PORT_CLIENT=4222",
		"AGORA_NATS_PORT_4222_TCP_ADDR=10.0.0.1", "AGORA_NATS_PORT_4222_TCP_PORT=4222", "AGORA_NATS_PORT_4222_UDP=udp://10.0.0.1:4222",
		// What is no variable of Agora's.
		"AGORAPHOBIA=1", "NATS_AGORA_URL=1", "PATH=/",
	}
	for _, name := range []string{"edge", "dev"} { // at an address that there can't be
		if out, status := inProcess(t, others, name, "--auth", "none", "--addr", "256.0.0.1:1"); status == exit.Usage || strings.Contains(out, "is no setting") {
			t.Errorf("agora %s ended with %d: %s", name, status, out)
		}
	}
	if out, status := inProcess(t, others, "config", "check", "--auth", "none"); status != 0 {
		t.Errorf("agora config check ended with %d: %s", status, out)
	}
}

func TestVerbsSayWhichVariableMayBeMeant(t *testing.T) {
	t.Parallel()
	env := []string{"AGORA_URL=ws://127.0.0.1:1", "AGORA_TOKNE=x", "AGORA_UNRELATED=x"}
	out, status := inProcess(t, env, "send", "--to", "bob", "--timeout", "10ms", "hello")
	if status == exit.Usage || !strings.Contains(out, "AGORA_TOKNE is no setting: do you mean AGORA_TOKEN?") || strings.Contains(out, "UNRELATED") {
		t.Errorf("agora send ended with %d: %s", status, out)
	}
}
