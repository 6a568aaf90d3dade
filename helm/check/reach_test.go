package check

import (
	"maps"
	"slices"
	"strings"
	"testing"

	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	gateway "sigs.k8s.io/gateway-api/apis/v1"
)

// portNames returns those of the ports of a Service.
func portNames(s *core.Service) (names []string) {
	for _, p := range s.Spec.Ports {
		names = append(names, p.Name)
	}
	return names
}

func TestGRPCAndPeersMayHaveServicesOfTheirOwn(t *testing.T) {
	values := minimal + `
service: {type: LoadBalancer, nodePort: 30080, loadBalancerClass: a/b, externalTrafficPolicy: Local, annotations: {a: front}}
grpcService: {enabled: true, type: NodePort, nodePort: 30051, annotations: {a: grpc}}
p2pService: {enabled: true, type: LoadBalancer, loadBalancerSourceRanges: [10.0.0.0/8]}
`
	all := rendered(t, values)
	front, grpc, p2p := get[core.Service](t, all, "Service/t-agora"), get[core.Service](t, all, "Service/t-agora-grpc"), get[core.Service](t, all, "Service/t-agora-p2p")
	if !slices.Equal(portNames(front), []string{"ws"}) || front.Spec.Type != core.ServiceTypeLoadBalancer || front.Spec.Ports[0].NodePort != 30080 ||
		*front.Spec.LoadBalancerClass != "a/b" || front.Spec.ExternalTrafficPolicy != core.ServiceExternalTrafficPolicyLocal || front.Annotations["a"] != "front" {
		t.Errorf("the first Service is %+v", front)
	}
	if !slices.Equal(portNames(grpc), []string{"grpc"}) || grpc.Spec.Type != core.ServiceTypeNodePort || grpc.Spec.Ports[0].NodePort != 30051 || grpc.Spec.Ports[0].Port != 50051 || grpc.Annotations["a"] != "grpc" {
		t.Errorf("that of gRPC is %+v", grpc)
	}
	if !slices.Equal(portNames(p2p), []string{"p2p"}) || p2p.Spec.Ports[0].Port != 9000 || !slices.Equal(p2p.Spec.LoadBalancerSourceRanges, []string{"10.0.0.0/8"}) {
		t.Errorf("that of peers is %+v", p2p)
	}
	for _, s := range []*core.Service{front, grpc, p2p} {
		if !within(s.Spec.Selector, edges(t, all).Template.Labels) {
			t.Errorf("%s selects no edge", s.Name)
		}
	}
	if config := settings(t, values); !strings.Contains(config, "aip.advertise: t-agora-grpc.agora:50051\n") {
		t.Errorf("nodes are told of another place:\n%s", config)
	}
}

func TestAGatewayLeadsToTheEdges(t *testing.T) {
	all := rendered(t, minimal+`
httpRoute: {enabled: true, parentRefs: [{name: public, namespace: gateways}], hostnames: [agora.example.org], path: /agora, timeouts: {request: 0s}}
grpcRoute: {enabled: true, parentRefs: [{name: public, sectionName: grpc}], hostnames: [grpc.example.org]}
grpcService: {enabled: true}
`)
	web := get[gateway.HTTPRoute](t, all, "HTTPRoute/t-agora").Spec
	if web.ParentRefs[0].Name != "public" || *web.ParentRefs[0].Namespace != "gateways" || web.Hostnames[0] != "agora.example.org" {
		t.Errorf("the route is %+v", web)
	}
	if r := web.Rules[0]; r.BackendRefs[0].Name != "t-agora" || *r.BackendRefs[0].Port != 80 || *r.Matches[0].Path.Value != "/agora" || *r.Timeouts.Request != "0s" {
		t.Errorf("its rule is %+v", r)
	}
	calls := get[gateway.GRPCRoute](t, all, "GRPCRoute/t-agora").Spec
	if *calls.ParentRefs[0].SectionName != "grpc" || calls.Hostnames[0] != "grpc.example.org" || calls.Rules[0].BackendRefs[0].Name != "t-agora-grpc" || *calls.Rules[0].BackendRefs[0].Port != 50051 {
		t.Errorf("the route of gRPC is %+v", calls)
	}
}

func TestAnIngressMayHaveSeveralHosts(t *testing.T) {
	in := get[networking.Ingress](t, rendered(t, minimal+`
ingress: {enabled: true, host: a.example.org, tlsSecret: a, path: /ws, hosts: [{host: b.example.org, tlsSecret: b}, {host: c.example.org, path: /c, pathType: Exact}]}
`), "Ingress/t-agora").Spec
	var got []string
	for _, r := range in.Rules {
		got = append(got, r.Host+r.HTTP.Paths[0].Path+" "+string(*r.HTTP.Paths[0].PathType))
	}
	if want := []string{"a.example.org/ws Prefix", "b.example.org/ Prefix", "c.example.org/c Exact"}; !slices.Equal(got, want) {
		t.Errorf("the rules are %v, want %v", got, want)
	}
	if len(in.TLS) != 2 || in.TLS[0].SecretName != "a" || in.TLS[1].SecretName != "b" || !slices.Equal(in.TLS[1].Hosts, []string{"b.example.org"}) {
		t.Errorf("the certificates are %+v", in.TLS)
	}
	if in := get[networking.Ingress](t, rendered(t, minimal+"ingress: {enabled: true, hosts: [{host: b.example.org}]}"), "Ingress/t-agora").Spec; len(in.Rules) != 1 || in.TLS != nil {
		t.Errorf("with hosts alone it is %+v", in)
	}
}

func TestOpenShiftChoosesTheIDsOfPods(t *testing.T) {
	for key, spec := range pods(rendered(t, files(t)["openshift.yaml"])) {
		if s := spec.SecurityContext; s.RunAsUser != nil || s.RunAsGroup != nil || s.FSGroup != nil || !*s.RunAsNonRoot {
			t.Errorf("%s: %+v", key, s)
		}
	}
}

func TestRulesAreThePodsAsSettingsAre(t *testing.T) {
	values := minimal + "policy: {rules: [{name: users, who: {roles: [user]}, send: ['*']}]}"
	pod := edges(t, rendered(t, values)).Template
	if !strings.Contains(settingsOf(t, pod), "policy: /etc/agora/config/policy.yaml\n") || !strings.Contains(pod.Annotations["agora/policy"], "name: users") {
		t.Errorf("an edge has %v", pod.Annotations)
	}
	k := slices.IndexFunc(pod.Spec.Volumes, func(v core.Volume) bool { return v.Name == "config" })
	if item := pod.Spec.Volumes[k].DownwardAPI.Items[1]; item.Path != "policy.yaml" || item.FieldRef.FieldPath != "metadata.annotations['agora/policy']" {
		t.Errorf("the file of rules is %+v", item)
	}
	agora := program(t)
	for text, want := range map[string]string{pod.Annotations["agora/policy"]: "", "rules: [{nam: users}]": "nam"} {
		config := strings.Replace(settingsOf(t, pod), "/etc/agora/config/policy.yaml", write(t, text), 1)
		config = strings.Replace(config, "file:/etc/agora/tokens/tokens", "none", 1)
		if fault := run(t, agora, config, "config", "check"); (fault == "") != (want == "") || !strings.Contains(fault, want) {
			t.Errorf("%q: the check says %q, want %q", text, fault, want)
		}
	}
}

func TestObjectsOfSomebodysOwnBelongToTheRelease(t *testing.T) {
	all := rendered(t, files(t)["everything.yaml"])
	if got := get[core.ConfigMap](t, all, "ConfigMap/otel").Data; !maps.Equal(got, map[string]string{"SERVICE_NAME": "t"}) {
		t.Errorf("the one that is written out has %v", got)
	}
	get[core.ConfigMap](t, all, "ConfigMap/t-relay-more")
}

// Containers that values add are beside those of the chart: the edge stays the first, and the check the last that comes
// before it.
func TestContainersOfSomebodysOwnAreBesideTheCharts(t *testing.T) {
	pod := edges(t, rendered(t, files(t)["everything.yaml"])).Template.Spec
	var names []string
	for _, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		names = append(names, c.Name)
	}
	if want := []string{"secrets", "check", "edge", "logs"}; !slices.Equal(names, want) {
		t.Errorf("there are %v, want %v", names, want)
	}
	if from := pod.Containers[0].EnvFrom; len(from) != 1 || from[0].Prefix != "OTEL_" || from[0].ConfigMapRef.Name != "otel" {
		t.Errorf("its environment is from %+v", from)
	}
}

// What the release's name is not enough for: two charts in one, each with a name of its own.
func TestAnotherNameIsTheSameEverywhere(t *testing.T) {
	all := rendered(t, minimal+"nameOverride: relay\nprometheusRule: {enabled: true}\nserviceMonitor: {enabled: true}\n")
	for key, o := range all {
		if s, is := o.(*core.Service); is && !within(s.Spec.Selector, edges(t, all).Template.Labels) {
			t.Errorf("%s selects no edge", key)
		}
	}
	texts, err := render(minimal + "nameOverride: relay\nprometheusRule: {enabled: true}\n")
	if rules := texts["agora/templates/observe.yaml"]; err != nil || strings.Contains(rules, `job="agora"`) || !strings.Contains(rules, `job="relay"`) {
		t.Errorf("the alerts are about another job (%v)", err)
	}
}
