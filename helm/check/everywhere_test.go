package check

import (
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	core "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

func TestEveryPodGoesWhereTheOthersGo(t *testing.T) {
	all := rendered(t, files(t)["trial.yaml"]+`
imagePullSecrets: [{name: registry}]
nodeSelector: {disk: ssd}
tolerations: [{key: edge, operator: Exists}]
`)
	specs := pods(all)
	if len(specs) != 5 {
		t.Fatalf("there are the pods %v", specs)
	}
	for key, spec := range specs {
		if !slices.Equal(spec.ImagePullSecrets, []core.LocalObjectReference{{Name: "registry"}}) || spec.NodeSelector["disk"] != "ssd" || len(spec.Tolerations) != 1 || spec.Tolerations[0].Key != "edge" {
			t.Errorf("%s has secrets %v, nodes %v and tolerations %v", key, spec.ImagePullSecrets, spec.NodeSelector, spec.Tolerations)
		}
	}
}

func TestEveryContainersLastWordsAreInTheStatusOfItsPod(t *testing.T) {
	for name, values := range files(t) {
		all := rendered(t, values)
		for key, spec := range pods(all) {
			for _, c := range slices.Concat(spec.InitContainers, spec.Containers) {
				if c.TerminationMessagePolicy != core.TerminationMessageFallbackToLogsOnError {
					t.Errorf("%s: %s/%s tells %q", name, key, c.Name, c.TerminationMessagePolicy)
				}
			}
		}
		if edge := edges(t, all).Template.Annotations["kubectl.kubernetes.io/default-container"]; edge != "edge" {
			t.Errorf("%s: kubectl looks at the container %q", name, edge)
		}
	}
}

// A network that is enforced may not let a new pod through at once.
func TestTheChartsOwnTestAsksAgain(t *testing.T) {
	pod := get[core.Pod](t, rendered(t, files(t)["trial.yaml"]), "Pod/t-agora-test").Spec
	if pod.RestartPolicy != core.RestartPolicyOnFailure || pod.ActiveDeadlineSeconds == nil || *pod.ActiveDeadlineSeconds < 60 || *pod.ActiveDeadlineSeconds > 240 {
		t.Errorf("it asks again: %s, for %v s", pod.RestartPolicy, pod.ActiveDeadlineSeconds)
	}
}

// Of certificates it knows nothing.
func TestTheChartsOwnTestLeavesOutWhatWantsACertificate(t *testing.T) {
	for values, want := range map[string]int{
		"test: {tokenSecret: x}": 2,
		"":                       1,
		"test: {tokenSecret: x}\nconfig: {tls: {cert: /a, key: /b}}": 1,
	} {
		if got := get[core.Pod](t, rendered(t, minimal+values), "Pod/t-agora-test").Spec.Containers; len(got) != want || got[0].Name != "ready" {
			t.Errorf("%q: it has %d containers, want %d", values, len(got), want)
		}
	}
}

func TestWordsThatYAMLTakesForSomethingElseStayWords(t *testing.T) {
	for _, word := range []string{"y", "on", "null", "1e3", "0123", "12", "1.0"} {
		named := cluster{release: word}
		labels := named.rendered(t, files(t)["trial.yaml"])
		if got := podLabels(labels)[0]["app.kubernetes.io/instance"]; got != word {
			t.Errorf("the release %s is %q to its pods", word, got)
		}
		values := strings.ReplaceAll(`
auth: {tokensSecret: "W", tokensKey: "W"}
nats: {url: ["nats://nats:4222"]}
redis: {url: "redis://redis:6379"}
image: {tag: "W"}
nameOverride: ""
podLabels: {a: "W"}
podAnnotations: {a: "W"}
commonLabels: {b: "W"}
secretSettings: [{setting: nats.password, secret: "W", key: "W"}]
files: [{path: /w, secret: "W"}, {path: /v, configMap: "W"}]
p2p: {clusterKeySecret: {name: "W", key: "W"}}
ingress: {enabled: true, className: "W", host: "W", tlsSecret: "W", hosts: [{host: "W", tlsSecret: "W"}]}
test: {tokenSecret: "W", tokenKey: "W"}
serviceAccount: {create: false, name: "W"}
service: {type: LoadBalancer, loadBalancerClass: "W"}
priorityClassName: "W"
`, `"W"`, `"`+word+`"`)
		all := named.rendered(t, values)
		name := slices.Sorted(func(yield func(string) bool) {
			for key := range all {
				if strings.HasPrefix(key, "Deployment/") && !yield(key) {
					return
				}
			}
		})[0]
		spec := pods(all)[name]
		if spec.PriorityClassName != word || spec.ServiceAccountName != word || spec.Volumes[1].Secret.SecretName != word || spec.Volumes[3].ConfigMap.Name != word {
			t.Errorf("%s: the pod is %+v", word, spec)
		}
	}
	for _, word := range []string{"y", "on", "null", "12"} { // what may name an object
		for key := range rendered(t, files(t)["trial.yaml"]+"fullnameOverride: \""+word+"\"\n") {
			if _, name, _ := strings.Cut(key, "/"); name != word && !strings.HasPrefix(name, word+"-") {
				t.Errorf("%s: there is %s", word, key)
			}
		}
	}
}

func TestTheNotesNameTheVolumesThatStay(t *testing.T) {
	notes := cluster{}.notes(t, files(t)["trial.yaml"])
	want := "kubectl delete pvc --namespace agora data-t-agora-nats-0 data-t-agora-nats-1 data-t-agora-nats-2 data-t-agora-redis-0\n"
	if !strings.Contains(notes, want) {
		t.Errorf("%q is not in\n%s", want, notes)
	}
	if notes := (cluster{}).notes(t, minimal); strings.Contains(notes, "pvc") {
		t.Errorf("there are no volumes:\n%s", notes)
	}
}

// Kubernetes would refuse the upgrade.
func TestVolumesStayAsTheyWereMade(t *testing.T) {
	trial := files(t)["trial.yaml"]
	made := get[apps.StatefulSet](t, rendered(t, trial), "StatefulSet/t-agora-nats")
	made.Namespace = "agora"
	old := made.Spec.VolumeClaimTemplates[0].Spec.Resources.Requests.Storage().String()
	in := cluster{objects: []runtime.Object{made}}
	larger := strings.Replace(trial, "trial: {", "trial: { storageClass: fast, nats: {storage: 8Gi}, redis: {storage: 8Gi},", 1)
	all := in.rendered(t, larger)
	for part, want := range map[string]string{"nats": old, "redis": "8Gi"} {
		claim := get[apps.StatefulSet](t, all, "StatefulSet/t-agora-"+part).Spec.VolumeClaimTemplates[0].Spec
		if got := claim.Resources.Requests.Storage().String(); got != want || (claim.StorageClassName == nil) != (part == "nats") {
			t.Errorf("a volume of %s has %s, want %s: %+v", part, got, want, claim)
		}
	}
	if notes := in.notes(t, larger); !strings.Contains(notes, "trial.nats.storage is 8Gi, and new volumes still are of "+old) || strings.Contains(notes, "trial.redis.storage") {
		t.Errorf("it is not told in\n%s", notes)
	}
}

func TestTheNotesSayWhenNothingScales(t *testing.T) {
	const custom, cpu = "nothing scales by connections", "nothing scales: "
	scaled := minimal + "autoscaling: {enabled: true, connections: 100}"
	for _, c := range []struct {
		values       string
		apis         []string
		custom, none bool
	}{
		{scaled, nil, true, true},
		{scaled, []string{"metrics.k8s.io/v1beta1"}, true, false},
		{scaled, []string{"metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta1"}, false, false},
		{scaled, []string{"metrics.k8s.io/v1beta1", "custom.metrics.k8s.io/v1beta2"}, false, false},
		{minimal + "autoscaling: {enabled: true}", []string{"metrics.k8s.io/v1beta1"}, false, false},
		{minimal, nil, false, false},
	} {
		notes := cluster{apis: c.apis}.notes(t, c.values)
		if strings.Contains(notes, custom) != c.custom || strings.Contains(notes, cpu) != c.none {
			t.Errorf("%q with %v: want %t and %t of\n%s", c.values, c.apis, c.custom, c.none, notes)
		}
	}
}

func TestTheNotesSayWhatReadsSecretsWhenItStarts(t *testing.T) {
	notes := cluster{}.notes(t, minimal+"secretSettings: [{setting: nats.password, secret: nats, key: p}]")
	if !strings.Contains(notes, "kubectl rollout restart deployment/t-agora --namespace agora") {
		t.Errorf("it is not told in\n%s", notes)
	}
}
