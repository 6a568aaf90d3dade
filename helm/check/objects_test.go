package check

import (
	"slices"
	"strings"
	"testing"

	monitoring "github.com/prometheus-operator/prometheus-operator/pkg/apis/monitoring/v1"
	apps "k8s.io/api/apps/v1"
	autoscaling "k8s.io/api/autoscaling/v2"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	networking "k8s.io/api/networking/v1"
	policy "k8s.io/api/policy/v1"
)

func TestEveryPodIsRestricted(t *testing.T) {
	for name, values := range files(t) {
		for key, spec := range pods(rendered(t, values)) {
			s := spec.SecurityContext
			if s == nil || s.RunAsNonRoot == nil || !*s.RunAsNonRoot || s.SeccompProfile == nil || s.SeccompProfile.Type != core.SeccompProfileTypeRuntimeDefault {
				t.Errorf("%s: %s may run as root, or without seccomp", name, key)
			}
			if spec.AutomountServiceAccountToken == nil || *spec.AutomountServiceAccountToken {
				t.Errorf("%s: %s has a token of Kubernetes", name, key)
			}
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				s := c.SecurityContext
				if s == nil || s.AllowPrivilegeEscalation == nil || *s.AllowPrivilegeEscalation || s.ReadOnlyRootFilesystem == nil || !*s.ReadOnlyRootFilesystem ||
					s.Capabilities == nil || !slices.Equal(s.Capabilities.Drop, []core.Capability{"ALL"}) || len(s.Capabilities.Add) > 0 {
					t.Errorf("%s: %s/%s is not restricted: %+v", name, key, c.Name, s)
				}
			}
		}
	}
}

// pods returns the pods that objects make.
func pods(all objects) map[string]core.PodSpec {
	specs := map[string]core.PodSpec{}
	for key, o := range all {
		switch o := o.(type) {
		case *apps.Deployment:
			specs[key] = o.Spec.Template.Spec
		case *apps.StatefulSet:
			specs[key] = o.Spec.Template.Spec
		case *batch.Job:
			specs[key] = o.Spec.Template.Spec
		case *core.Pod:
			specs[key] = o.Spec
		}
	}
	return specs
}

func TestAnEdgeMayServeOnForAWhileBeforeItEnds(t *testing.T) {
	all := rendered(t, minimal+"drain: {preStopSeconds: 10, delaySeconds: 7, timeoutSeconds: 40}")
	pod := edges(t, all).Template.Spec
	if l := pod.Containers[0].Lifecycle; l == nil || l.PreStop == nil || l.PreStop.Sleep == nil || l.PreStop.Sleep.Seconds != 10 {
		t.Errorf("lifecycle %+v, want a sleep of 10 s", l)
	}
	if grace := *pod.TerminationGracePeriodSeconds; grace <= 57 {
		t.Errorf("it is killed after %d s, and needs 57", grace)
	}
}

func TestAnEdgeHasTimeToHandItsAgentsOver(t *testing.T) {
	all := rendered(t, minimal+"drain: {delaySeconds: 7, timeoutSeconds: 40}")
	d := edges(t, all)
	if grace := *d.Template.Spec.TerminationGracePeriodSeconds; grace <= 47 {
		t.Errorf("it is killed after %d s, and needs 47", grace)
	}
	config := settingsOf(t, d.Template)
	for _, want := range []string{"drain.delay: 7s", "drain.timeout: 40s"} {
		if !strings.Contains(config, want) {
			t.Errorf("%s is not in %s", want, config)
		}
	}
	edge := d.Template.Spec.Containers[0]
	if edge.Lifecycle != nil {
		t.Errorf("a hook that nobody asked for: %+v", edge.Lifecycle)
	}
	ready := edge.ReadinessProbe
	if ready.HTTPGet == nil || ready.HTTPGet.Path != "/readyz" || int(ready.PeriodSeconds*ready.FailureThreshold) > 7 {
		t.Errorf("that an edge ends is not seen within its delay: %+v", ready)
	}
	if live := edge.LivenessProbe; live.HTTPGet == nil || live.HTTPGet.Path != "/healthz" {
		t.Errorf("an edge is killed when NATS is away: %+v", live)
	}
	if r := d.Strategy.RollingUpdate; r.MaxUnavailable.IntValue() != 0 {
		t.Errorf("an upgrade begins by taking an edge away: %+v", r)
	}
}

func TestEachEdgeHasAnIDOfItsOwn(t *testing.T) {
	edge := edges(t, rendered(t, minimal)).Template.Spec.Containers[0]
	name := slices.IndexFunc(edge.Env, func(e core.EnvVar) bool {
		return e.Name == "POD_NAME" && e.ValueFrom.FieldRef.FieldPath == "metadata.name"
	})
	if !slices.Equal(edge.Args, []string{"edge", "--id=$(POD_NAME)"}) || name < 0 {
		t.Errorf("args %v, env %v", edge.Args, edge.Env)
	}
}

func TestSecretsAreReferredToAndNeverWritten(t *testing.T) {
	all := rendered(t, minimal+"secretSettings: [{setting: nats.password, secret: nats, key: pw}, {setting: redis.sentinel.password, secret: redis, key: s}]")
	env := edges(t, all).Template.Spec.Containers[0].Env
	for name, secret := range map[string]string{"AGORA_NATS_PASSWORD": "nats", "AGORA_REDIS_SENTINEL_PASSWORD": "redis"} {
		if !slices.ContainsFunc(env, func(e core.EnvVar) bool {
			return e.Name == name && e.Value == "" && e.ValueFrom.SecretKeyRef.Name == secret
		}) {
			t.Errorf("%s is not taken from the Secret %s: %v", name, secret, env)
		}
	}
	for key := range all {
		if strings.HasPrefix(key, "Secret/") {
			t.Errorf("%s is written", key)
		}
	}
}

func TestSelectorsFindTheirPods(t *testing.T) {
	for name, values := range files(t) {
		all := rendered(t, values)
		for key, o := range all {
			var selector map[string]string
			switch o := o.(type) {
			case *core.Service:
				selector = o.Spec.Selector
			case *policy.PodDisruptionBudget:
				selector = o.Spec.Selector.MatchLabels
			}
			if selector != nil && !slices.ContainsFunc(podLabels(all), func(have map[string]string) bool { return within(selector, have) }) {
				t.Errorf("%s: %s selects no pod", name, key)
			}
			if m, is := o.(*monitoring.ServiceMonitor); is && !within(m.Spec.Selector.MatchLabels, get[core.Service](t, all, "Service/"+fullname(t, all)+"-admin").Labels) {
				t.Errorf("%s: %s selects no service", name, key)
			}
		}
		if within(edges(t, all).Selector.MatchLabels, map[string]string{}) {
			t.Errorf("%s: the deployment selects everything", name)
		}
	}
}

// podLabels returns those of every kind of pod.
func podLabels(all objects) (have []map[string]string) {
	for _, o := range all {
		switch o := o.(type) {
		case *apps.Deployment:
			have = append(have, o.Spec.Template.Labels)
		case *apps.StatefulSet:
			have = append(have, o.Spec.Template.Labels)
		}
	}
	return have
}

func within(want, have map[string]string) bool {
	for k, v := range want {
		if have[k] != v {
			return false
		}
	}
	return true
}

func TestAutoscalingGoesByProcessorAndConnections(t *testing.T) {
	all := rendered(t, minimal+"autoscaling: {enabled: true, connections: 15000}")
	if r := edges(t, all).Replicas; r != nil {
		t.Errorf("the deployment says %d replicas too: every upgrade would set them back", *r)
	}
	m := get[autoscaling.HorizontalPodAutoscaler](t, all, "HorizontalPodAutoscaler/t-agora").Spec.Metrics
	if len(m) != 2 || m[0].Resource.Name != core.ResourceCPU || m[1].Pods.Metric.Name != "agora_ws_connections" || m[1].Pods.Target.AverageValue.Value() != 15000 {
		t.Errorf("metrics are %+v", m)
	}
}

func TestNothingKeepsANodeFromBeingDrained(t *testing.T) {
	all := rendered(t, minimal)
	b := get[policy.PodDisruptionBudget](t, all, "PodDisruptionBudget/t-agora").Spec
	if b.MinAvailable != nil || b.MaxUnavailable.IntValue() < 1 {
		t.Errorf("the budget is %+v", b)
	}
	for _, c := range edges(t, all).Template.Spec.TopologySpreadConstraints {
		if c.WhenUnsatisfiable != core.ScheduleAnyway {
			t.Errorf("a pod that can't be spread is not started: %+v", c)
		}
	}
}

func TestAWebSocketGetsThroughTheIngress(t *testing.T) {
	all := rendered(t, minimal+"ingress: {enabled: true, host: agora.example.org, tlsSecret: tls}")
	in := get[networking.Ingress](t, all, "Ingress/t-agora")
	if in.Annotations["nginx.ingress.kubernetes.io/proxy-read-timeout"] != "3600" {
		t.Errorf("a quiet connection is cut: %v", in.Annotations)
	}
	back := in.Spec.Rules[0].HTTP.Paths[0]
	service := get[core.Service](t, all, "Service/t-agora").Spec.Ports[0]
	if back.Path != "/" || *back.PathType != networking.PathTypePrefix || in.Annotations["nginx.ingress.kubernetes.io/proxy-buffering"] != "off" {
		t.Errorf("what is asked over HTTP, or lasts, does not get through: %+v, %v", back, in.Annotations)
	}
	if back.Backend.Service.Port.Name != service.Name || service.AppProtocol == nil || *service.AppProtocol != "kubernetes.io/ws" {
		t.Errorf("path %+v, port %+v", back, service)
	}
	if in.Spec.TLS[0].SecretName != "tls" {
		t.Errorf("tls is %v", in.Spec.TLS)
	}
}

func TestTheAdminPortIsNotForEverybody(t *testing.T) {
	p := get[networking.NetworkPolicy](t, rendered(t, minimal), "NetworkPolicy/t-agora").Spec
	for _, rule := range p.Ingress {
		if rule.Ports[0].Port.String() == "admin" && len(rule.From) == 0 {
			t.Error("everybody may ask it")
		}
	}
	if len(p.PolicyTypes) != 2 || len(p.Egress) != 4 {
		t.Errorf("an edge may reach more than names, NATS, Redis and other edges: %+v", p.Egress)
	}
}

func TestTheChartsOwnTestGetsThroughTheNetworkPolicy(t *testing.T) {
	all := rendered(t, files(t)["production.yaml"])
	pod := get[core.Pod](t, all, "Pod/t-agora-test")
	for _, rule := range get[networking.NetworkPolicy](t, all, "NetworkPolicy/t-agora").Spec.Ingress {
		if !slices.ContainsFunc(rule.From, func(p networking.NetworkPolicyPeer) bool {
			return p.PodSelector != nil && p.NamespaceSelector == nil && len(p.PodSelector.MatchLabels) > 0 && within(p.PodSelector.MatchLabels, pod.Labels)
		}) {
			t.Errorf("it does not reach %s: %+v", rule.Ports[0].Port, rule.From)
		}
	}
	if edge := edges(t, all).Selector.MatchLabels; within(edge, pod.Labels) {
		t.Errorf("it is taken for an edge: %v", pod.Labels)
	}
}

func TestTheTrialsPartsFitTogether(t *testing.T) {
	all := rendered(t, files(t)["trial.yaml"])
	nats := get[apps.StatefulSet](t, all, "StatefulSet/t-agora-nats").Spec
	config := settings(t, files(t)["trial.yaml"])
	if *nats.Replicas != 3 || !strings.Contains(config, "nats://t-agora-nats-2.t-agora-nats:4222") || !strings.Contains(config, "nats.replicas: 3") {
		t.Errorf("%d servers, and the edges have\n%s", *nats.Replicas, config)
	}
	conf := get[core.ConfigMap](t, all, "ConfigMap/t-agora-nats").Data
	for _, want := range []string{"max_payload: 8MB", "nats://t-agora-nats-0.t-agora-nats:6222", "include ./edge-permissions.conf"} {
		if !strings.Contains(conf["nats.conf"], want) {
			t.Errorf("%q is not in\n%s", want, conf["nats.conf"])
		}
	}
	redis := get[apps.StatefulSet](t, all, "StatefulSet/t-agora-redis").Spec.Template.Spec.Containers[0]
	at := slices.Index(redis.Args, "edge") - 1
	if at < 0 {
		t.Fatalf("Redis has %v, and no user for edges", redis.Args)
	}
	edge := redis.Args[at:]
	if !slices.Contains(edge, "+zscan") || !slices.Contains(edge, "~agora:1:*") || slices.Contains(edge, "+@all") || !slices.Contains(edge, ">$(PASSWORD)") {
		t.Errorf("of edges Redis has %v", edge)
	}
	if own := []string{"--user", "default", "off", "resetpass", "~*", "&*", "+@all"}; !slices.Equal(redis.Args[max(0, at-len(own)):at], own) {
		t.Errorf("Redis reads its file with %v, want %v: what that may not do is lost", redis.Args[:at], own)
	}
}
