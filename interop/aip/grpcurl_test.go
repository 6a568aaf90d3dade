//go:build interop

package aip

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/client/aip"
	"github.com/agora-relay/agora/internal/await"
)

// asks has grpcurl call a method of an edge with messages, or do what flags say, and returns what it says, and whether
// all went well.
func asks(t *testing.T, edge string, messages []string, argv ...string) (said string, ok bool) {
	t.Helper()
	flags := []string{"-plaintext", "-emit-defaults"}
	if messages != nil {
		flags = append(flags, "-d", "@")
	}
	for len(argv) > 0 && strings.HasPrefix(argv[0], "-") {
		flags, argv = append(flags, argv[0], argv[1]), argv[2:]
	}
	cmd := exec.CommandContext(await.Context(t), absolute(t, filepath.Join(installed, "go/grpcurl")), append(append(flags, edge), argv...)...)
	cmd.Stdin = strings.NewReader(strings.Join(messages, "\n"))
	out, err := cmd.CombinedOutput()
	return string(out), err == nil
}

// answers has grpcurl call a method, and wants an answer.
func answers[T any](t *testing.T, edge, method, message string) (answer T) {
	t.Helper()
	said, ok := asks(t, edge, []string{message}, method)
	if err := json.Unmarshal([]byte(said), &answer); err != nil || !ok {
		t.Errorf("%s %s: %s", method, message, said)
	}
	return answer
}

const gateway = "grpc_service.GatewayService"

// says wants parts of what grpcurl says.
func says(t *testing.T, what, said string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(said, p) {
			t.Errorf("%s: %q is not in\n%s", what, p, said)
		}
	}
}

func TestGrpcurlFindsTheServicesByReflection(t *testing.T) {
	for k, edge := range start(t).GRPC {
		said, _ := asks(t, edge, nil, "list")
		says(t, "list", said, gateway+"\n", "grpc.health.v1.Health\n", "grpc.reflection.v1.ServerReflection\n", "grpc.reflection.v1alpha.ServerReflection\n")
		said, _ = asks(t, edge, nil, "list", gateway)
		for _, m := range []string{"RouteAgentCalling", "RouteToolCalling", "RegisterAgent", "RegisterTool", "DeregisterNode", "GetNodes", "Heartbeat", "UpdateNodeInfo", "SubscribeToUpdates", "Unsubscribe"} {
			says(t, "methods", said, gateway+"."+m+"\n")
		}
		said, _ = asks(t, edge, nil, "describe", gateway)
		says(t, "describe", said, "rpc RouteAgentCalling ( stream .grpc_service.AgentMessage ) returns ( stream .grpc_service.AgentMessage );")
		said, _ = asks(t, edge, nil, "describe", "grpc_service.AgentMessage")
		says(t, "describe", said, ".grpc_service.AgentMessage.SessionStatus session_status = 4;", "repeated .grpc_service.ContentItem content = 8;")
		for _, service := range []string{"", gateway} {
			health := answers[struct{ Status string }](t, edge, "grpc.health.v1.Health/Check", `{"service":"`+service+`"}`)
			if health.Status != "SERVING" {
				t.Errorf("edge %d: the health of %q is %q", k, service, health.Status)
			}
		}
	}
}

// listed is what gateways answer of nodes.
type listed struct {
	Success bool
	Peers   []struct {
		AgentInfo struct {
			AgentId, Address string
			InputMode        []string
			Skills           []struct{ SkillId, Capability string }
		}
	}
}

func TestGrpcurlRegistersNodes(t *testing.T) {
	c := start(t)
	at := unregistered(t)
	info := `{"agent_id":"al 1","address":"` + at + `","name":"Al","domain":"d","input_mode":["TEXT","AUDIO"],"skills":[{"skill_id":"s","capability":"ü"}]}`
	registered := answers[listed](t, c.GRPC[0], gateway+"/RegisterAgent", info)
	if !registered.Success || len(registered.Peers) != 1 || registered.Peers[0].AgentInfo.AgentId != "al 1" {
		t.Errorf("registered: %+v", registered)
	}
	said, ok := asks(t, c.GRPC[1], []string{info}, gateway+"/RegisterAgent")
	if ok {
		t.Errorf("it was registered twice: %s", said)
	}
	says(t, "again", said, "Code: AlreadyExists\n", "Message: Agent [al 1] already registered.\n")
	for k, edge := range c.GRPC {
		all := answers[listed](t, edge, gateway+"/GetNodes", `{"domain":"default"}`)
		if len(all.Peers) != 1 || all.Peers[0].AgentInfo.Address != at || all.Peers[0].AgentInfo.InputMode[1] != "AUDIO" || all.Peers[0].AgentInfo.Skills[0].Capability != "ü" {
			t.Errorf("edge %d lists %+v", k, all)
		}
	}
	says(t, "heartbeat", heartbeat(t, c.GRPC[2], "al 1"), `"success": true`)
	says(t, "heartbeat", heartbeat(t, c.GRPC[2], "bob"), `"success": false`, `"message": "Node bob not registered"`)
	says(t, "deregistered", deregister(t, c.GRPC[2], "al 1"), `"success": true`)
	says(t, "again", deregister(t, c.GRPC[0], "al 1"), `"success": false`)
}

// unregistered returns the address of an agent that registers with nobody, and says back what it hears.
func unregistered(t *testing.T) string {
	t.Helper()
	agent, err := aip.NewAgent(aip.Config{ID: "al 1"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { agent.Close() })
	agent.Handle((&goNode{}).converse)
	if err := agent.Start(); err != nil {
		t.Fatal(err)
	}
	return agent.Address()
}

func TestGrpcurlHoldsASession(t *testing.T) {
	c := start(t)
	answers[listed](t, c.GRPC[0], gateway+"/RegisterAgent", `{"agent_id":"al 1","address":"`+unregistered(t)+`"}`)
	session := []string{
		`{"sender_id":"me","receiver_id":"al 1","session_id":"s","session_status":"START_QUEST","content":[{"text":"x"},{"image":"AP+A"}]}`,
		`{"sender_id":"me","receiver_id":"al 1","session_id":"s","session_status":"STOP_QUEST"}`,
	}
	file := absolute(t, protoFile)
	for _, flags := range [][]string{nil, {"-proto", file, "-import-path", filepath.Dir(file)}} {
		said, ok := asks(t, c.GRPC[1], session, append(flags, gateway+"/RouteAgentCalling")...)
		says(t, "session", said, `"sessionStatus": "HOLD_RESPONSE"`, `"text": "x"`, `"image": "AP+A"`, `"sessionStatus": "STOP_RESPONSE"`)
		if !ok {
			t.Errorf("the session ended with\n%s", said)
		}
	}
	said, _ := asks(t, c.GRPC[1], []string{strings.ReplaceAll(session[0], "al 1", "bob")}, gateway+"/RouteAgentCalling")
	says(t, "nobody", said, "Code: NotFound\n", "Message: Receiver not found\n")
}

// heartbeat has grpcurl give a sign of life of a node.
func heartbeat(t *testing.T, edge, id string) string {
	t.Helper()
	said, _ := asks(t, edge, []string{`{"sender_id":"` + id + `"}`}, gateway+"/Heartbeat")
	return said
}

// deregister has grpcurl deregister a node.
func deregister(t *testing.T, edge, id string) string {
	t.Helper()
	said, _ := asks(t, edge, []string{`{"node_id":"` + id + `"}`}, gateway+"/DeregisterNode")
	return said
}
