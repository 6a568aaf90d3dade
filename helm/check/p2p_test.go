package check

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// peerPort returns the port of an edge for peers of libp2p, and its environment.
func peerPort(t *testing.T, values string) (*core.ContainerPort, []core.EnvVar) {
	t.Helper()
	edge := edges(t, rendered(t, values)).Template.Spec.Containers[0]
	if k := slices.IndexFunc(edge.Ports, func(p core.ContainerPort) bool { return p.Name == "p2p" }); k >= 0 {
		return &edge.Ports[k], edge.Env
	}
	return nil, edge.Env
}

// variable returns a variable of an environment; the zero one for none.
func variable(env []core.EnvVar, name string) core.EnvVar {
	if k := slices.IndexFunc(env, func(v core.EnvVar) bool { return v.Name == name }); k >= 0 {
		return env[k]
	}
	return core.EnvVar{}
}

func TestPeersOfLibp2pReachEachEdge(t *testing.T) {
	port, env := peerPort(t, minimal)
	if port == nil || port.ContainerPort != 9000 || port.HostPort != 0 || !strings.Contains(settings(t, minimal), "p2p-addr: :9000\n") {
		t.Errorf("an edge has the port %+v, and the settings\n%s", port, settings(t, minimal))
	}
	if at := variable(env, "AGORA_P2P_ANNOUNCE").Value; at != "/ip4/$(POD_IP)/tcp/9000" {
		t.Errorf("an edge says that it is at %q", at)
	}
	all := rendered(t, minimal)
	if !slices.ContainsFunc(get[core.Service](t, all, "Service/t-agora").Spec.Ports, func(p core.ServicePort) bool { return p.Name == "p2p" && p.Port == 9000 }) {
		t.Error("the service has no such port")
	}
	policy := get[networking.NetworkPolicy](t, all, "NetworkPolicy/t-agora").Spec
	if !slices.ContainsFunc(policy.Ingress[0].Ports, func(p networking.NetworkPolicyPort) bool { return p.Port.String() == "p2p" }) ||
		!slices.ContainsFunc(policy.Egress, func(e networking.NetworkPolicyEgressRule) bool {
			return len(e.To) == 1 && e.Ports[0].Port.String() == "p2p"
		}) {
		t.Errorf("peers and edges get through by %+v", policy)
	}
	values := minimal + "p2p: {family: ip6, hostPort: 9001, clusterKeySecret: {name: keys, key: k}}"
	port, env = peerPort(t, values)
	if at := variable(env, "AGORA_P2P_ANNOUNCE").Value; port.HostPort != 9001 || at != "/ip6/$(POD_IP)/tcp/9000,/ip6/$(HOST_IP)/tcp/9001" {
		t.Errorf("at a node it is %+v, %q", port, at)
	}
	if from := variable(env, "AGORA_P2P_CLUSTER_KEY").ValueFrom; from == nil || from.SecretKeyRef.Name != "keys" || from.SecretKeyRef.Key != "k" {
		t.Errorf("the cluster's key is from %+v", from)
	}
	if _, env = peerPort(t, minimal+"config: {p2p.announce: [/dns4/edge.example.org/tcp/9000]}"); variable(env, "AGORA_P2P_ANNOUNCE").Value != "" {
		t.Error("what config says does not count")
	}
}

func TestThereNeedBeNoPortForPeers(t *testing.T) {
	values := minimal + "service: {p2pPort: 0}"
	if port, env := peerPort(t, values); port != nil || variable(env, "AGORA_P2P_ANNOUNCE").Value != "" || !strings.Contains(settings(t, values), "p2p-addr: none\n") {
		t.Errorf("there is %+v, and\n%s", port, settings(t, values))
	}
}
