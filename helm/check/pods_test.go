package check

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	policy "k8s.io/api/policy/v1"
)

// edgePod returns the pod of an edge, and the container that is the edge.
func edgePod(t *testing.T, values string) (core.PodSpec, core.Container) {
	t.Helper()
	pod := edges(t, rendered(t, values)).Template.Spec
	return pod, pod.Containers[0]
}

func TestAnEdgeTakesEnvironmentAndVolumesOfTheOperators(t *testing.T) {
	pod, edge := edgePod(t, minimal+`
extraEnv: [{name: HTTPS_PROXY, value: http://proxy:3128}, {name: NODE, valueFrom: {fieldRef: {fieldPath: spec.nodeName}}}]
extraVolumes: [{name: scratch, emptyDir: {sizeLimit: 1Gi}}]
extraVolumeMounts: [{name: scratch, mountPath: /scratch}]
`)
	node := slices.IndexFunc(edge.Env, func(e core.EnvVar) bool { return e.Name == "NODE" })
	if !slices.Contains(edge.Env, core.EnvVar{Name: "HTTPS_PROXY", Value: "http://proxy:3128"}) || node < 0 || edge.Env[node].ValueFrom.FieldRef.FieldPath != "spec.nodeName" {
		t.Errorf("the environment is %v", edge.Env)
	}
	if !slices.ContainsFunc(pod.Volumes, func(v core.Volume) bool { return v.Name == "scratch" && v.EmptyDir != nil }) {
		t.Errorf("the volumes are %v", pod.Volumes)
	}
	if !slices.ContainsFunc(edge.VolumeMounts, func(m core.VolumeMount) bool { return m.Name == "scratch" && m.MountPath == "/scratch" }) {
		t.Errorf("what is mounted is %v", edge.VolumeMounts)
	}
}

func TestTheGarbageCollectorKnowsTheMemoryLimit(t *testing.T) {
	for values, want := range map[string]string{
		"":                                             "921MiB",
		"resources: {limits: {memory: 512Mi}}":         "460MiB",
		"resources: {limits: {memory: 1.5Gi}}":         "1382MiB",
		"resources: {limits: {memory: 2G}}":            "1716MiB",
		"resources: {limits: {memory: 1073741824}}":    "921MiB",
		"resources: {limits: {memory: '536870912'}}":   "460MiB",
		"resources: {limits: {memory: 1e9}}":           "858MiB",
		"resources: {limits: {memory: 4194304Ki}}":     "3686MiB",
		"resources: {limits: {memory: null}}":          "",
		"extraEnv: [{name: GOMEMLIMIT, value: 'off'}]": "off",
	} {
		_, edge := edgePod(t, minimal+values)
		var got []string
		for _, e := range edge.Env {
			if e.Name == "GOMEMLIMIT" {
				got = append(got, e.Value)
			}
		}
		if strings.Join(got, ",") != want {
			t.Errorf("%q: GOMEMLIMIT is %q, want %q", values, got, want)
		}
	}
}

// What an edge will not take is found before it is started, by the program itself, and those that run serve on.
func TestTheSettingsAreCheckedBeforeAnEdgeStarts(t *testing.T) {
	for name, values := range files(t) {
		pod, edge := edgePod(t, values)
		check := pod.InitContainers[len(pod.InitContainers)-1] // behind those that values add, which may write what it reads
		if want := append([]string{"config", "check"}, edge.Args[1:]...); !slices.Equal(check.Args, want) {
			t.Errorf("%s: it runs %v, want %v", name, check.Args, want)
		}
		if check.Image != edge.Image || check.ImagePullPolicy != edge.ImagePullPolicy || !reflect.DeepEqual(check.Env, edge.Env) || !reflect.DeepEqual(check.VolumeMounts, withoutToken(edge.VolumeMounts)) {
			t.Errorf("%s: what is checked is not what the edge is given: %+v", name, check)
		}
		if !reflect.DeepEqual(check.Resources, edge.Resources) {
			t.Errorf("%s: the check needs %+v, and the edge %+v", name, check.Resources, edge.Resources)
		}
	}
}

func TestPodsThatAreNotWellMayBeEvicted(t *testing.T) {
	all := rendered(t, files(t)["trial.yaml"])
	for _, name := range []string{"t-agora", "t-agora-nats"} {
		b := get[policy.PodDisruptionBudget](t, all, "PodDisruptionBudget/"+name).Spec
		if p := b.UnhealthyPodEvictionPolicy; p == nil || *p != policy.AlwaysAllow {
			t.Errorf("%s: the budget is %+v: a node with a pod that never gets ready can't be drained", name, b)
		}
	}
}

func TestTheTrialsNATSServersAreSpreadAndGoOneByOne(t *testing.T) {
	all := rendered(t, files(t)["trial.yaml"])
	b := get[policy.PodDisruptionBudget](t, all, "PodDisruptionBudget/t-agora-nats").Spec
	nats := get[apps.StatefulSet](t, all, "StatefulSet/t-agora-nats").Spec.Template
	if b.MaxUnavailable.IntValue() != 1 || !within(b.Selector.MatchLabels, nats.Labels) || within(b.Selector.MatchLabels, edges(t, all).Template.Labels) {
		t.Errorf("the budget is %+v", b)
	}
	var over []string
	for _, c := range nats.Spec.TopologySpreadConstraints {
		over = append(over, c.TopologyKey)
		if c.WhenUnsatisfiable != core.ScheduleAnyway || !within(c.LabelSelector.MatchLabels, nats.Labels) || c.LabelSelector.MatchLabels["app.kubernetes.io/component"] != "nats" {
			t.Errorf("spread is %+v", c)
		}
	}
	if !slices.Equal(over, []string{"topology.kubernetes.io/zone", "kubernetes.io/hostname"}) {
		t.Errorf("they are spread over %v", over)
	}
}

func TestTheNotesSayWhenPrometheusIsShutOut(t *testing.T) {
	const word = "networkPolicy.metricsFrom"
	for values, said := range map[string]bool{
		"":                                true,
		"serviceMonitor: {enabled: true}": true,
		"networkPolicy: {enabled: false}": false,
		"networkPolicy: {metricsFrom: [{namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: monitoring}}}]}": false,
	} {
		if notes := (cluster{}).notes(t, minimal+values); strings.Contains(notes, word) != said {
			t.Errorf("%q: that Prometheus is shut out is told: %v, want %v\n%s", values, !said, said, notes)
		}
	}
}
