package check

import (
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
)

// grpcOf returns the port of the service for gRPC, that of an edge which it leads to, and whether a NetworkPolicy lets
// agents in there.
func grpcOf(t *testing.T, values string) (service *core.ServicePort, container *core.ContainerPort, open bool) {
	t.Helper()
	all := rendered(t, values)
	for _, p := range get[core.Service](t, all, "Service/t-agora").Spec.Ports {
		if p.Name == "grpc" {
			service = &p
		}
	}
	for _, p := range edges(t, all).Template.Spec.Containers[0].Ports {
		if p.Name == "grpc" {
			container = &p
		}
	}
	policy := get[networking.NetworkPolicy](t, all, "NetworkPolicy/t-agora").Spec.Ingress[0]
	open = slices.ContainsFunc(policy.Ports, func(p networking.NetworkPolicyPort) bool { return p.Port.String() == "grpc" })
	return service, container, open
}

func TestAgentsThatSpeakGRPCGetThrough(t *testing.T) {
	service, container, open := grpcOf(t, minimal)
	if service == nil || service.Port != 50051 || service.TargetPort.String() != "grpc" || service.AppProtocol == nil || *service.AppProtocol != "kubernetes.io/h2c" {
		t.Errorf("the service has %+v", service)
	}
	config := settings(t, minimal)
	if container == nil || container.ContainerPort != 50051 || !strings.Contains(config, "grpc-addr: :50051\n") || !open {
		t.Errorf("an edge has the port %+v, let in %t, and the settings\n%s", container, open, config)
	}
	if !strings.Contains(config, "aip.advertise: t-agora.agora:50051\n") {
		t.Errorf("nodes are told of another place:\n%s", config)
	}
	if config := settings(t, minimal+"service: {grpcPort: 443}\nconfig: {aip.advertise: 'agora.example.org:443'}"); !strings.Contains(config, "aip.advertise: agora.example.org:443\n") {
		t.Errorf("what config says does not count:\n%s", config)
	}
}

// Anyone who balances load must not speak h2c to an edge that speaks TLS.
func TestGRPCOverTLSIsNotTakenForH2C(t *testing.T) {
	for _, config := range []string{"{tls.cert: /a, tls.key: /b}", "{tls: {cert: /a, key: /b}}"} {
		if service, _, _ := grpcOf(t, minimal+"config: "+config); service == nil || service.AppProtocol != nil {
			t.Errorf("%s: the service has %+v", config, service)
		}
	}
}

func TestThereNeedBeNoPortForGRPC(t *testing.T) {
	values := minimal + "service: {grpcPort: 0}"
	service, container, open := grpcOf(t, values)
	if config := settings(t, values); service != nil || container != nil || open || !strings.Contains(config, "grpc-addr: none\n") || strings.Contains(config, "aip.") {
		t.Errorf("there is %+v, %+v, %t, and\n%s", service, container, open, config)
	}
}
