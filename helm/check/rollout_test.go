package check

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	apps "k8s.io/api/apps/v1"
	batch "k8s.io/api/batch/v1"
	core "k8s.io/api/core/v1"
	meta "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
)

// checkJob returns the Job that checks the settings before Helm changes anything.
func checkJob(t *testing.T, all objects) *batch.Job {
	t.Helper()
	return get[batch.Job](t, all, "Job/"+fullname(t, all)+"-check")
}

// Each ReplicaSet has the settings that its pods were made for: an old pod that starts again finds them, and so does
// who goes back.
func TestSettingsBelongToThePods(t *testing.T) {
	before, after := rendered(t, minimal), rendered(t, minimal+"config: {mailbox.max-age: 7m}")
	if a, b := edges(t, before).Template, edges(t, after).Template; reflect.DeepEqual(a, b) || !strings.Contains(settingsOf(t, b), "mailbox.max-age: 7m\n") {
		t.Errorf("other settings make the same pods: %v", b.Annotations)
	}
	for key := range after {
		if strings.HasPrefix(key, "ConfigMap/") {
			t.Errorf("%s is shared by old pods and new ones", key)
		}
	}
}

func TestSettingsAreCheckedBeforeAnythingChanges(t *testing.T) {
	for name, values := range files(t) {
		if strings.Contains(values, "configCheck: { enabled: false }") {
			continue
		}
		all := rendered(t, values)
		job, pod := checkJob(t, all), edges(t, all).Template
		if hook := job.Annotations["helm.sh/hook"]; !strings.HasSuffix(hook, "pre-upgrade") {
			t.Errorf("%s: it runs at %q", name, hook)
		}
		check, there := job.Spec.Template.Spec.Containers[0], pod.Spec.InitContainers[len(pod.Spec.InitContainers)-1]
		if !slices.Equal(check.Args, there.Args) || check.Image != there.Image || !reflect.DeepEqual(check.VolumeMounts, there.VolumeMounts) || !reflect.DeepEqual(check.EnvFrom, there.EnvFrom) {
			t.Errorf("%s: what is checked is not what edges are given: %+v", name, check)
		}
		if settingsOf(t, job.Spec.Template) != settingsOf(t, pod) || !reflect.DeepEqual(job.Spec.Template.Spec.Volumes, withoutTokens(pod.Spec.Volumes)) {
			t.Errorf("%s: other files are checked than edges have", name)
		}
		for n, e := range there.Env {
			if strings.HasSuffix(e.Name, "_PASSWORD") && e.ValueFrom.SecretKeyRef.Name == fullname(t, all)+"-trial" {
				e = core.EnvVar{Name: e.Name, Value: "not-looked-at"} // before an installation the release's Secret is not there
			}
			if !reflect.DeepEqual(check.Env[n], e) {
				t.Errorf("%s: the check has %+v, and edges %+v", name, check.Env[n], e)
			}
		}
		if a, b := job.Spec.Template.Spec, pod.Spec; !reflect.DeepEqual(a.SecurityContext, b.SecurityContext) || !reflect.DeepEqual(a.ImagePullSecrets, b.ImagePullSecrets) ||
			!reflect.DeepEqual(a.NodeSelector, b.NodeSelector) || !reflect.DeepEqual(a.Tolerations, b.Tolerations) {
			t.Errorf("%s: the check runs as %+v, and edges as %+v", name, a, b)
		}
		if within(edges(t, all).Selector.MatchLabels, job.Spec.Template.Labels) {
			t.Errorf("%s: the check is taken for an edge", name)
		}
	}
}

// A fault is told at once, a pod that was evicted is no fault.
func TestTheCheckEndsWithTheFirstFault(t *testing.T) {
	job := checkJob(t, rendered(t, minimal)).Spec
	rules := job.PodFailurePolicy.Rules
	if len(rules) != 2 || rules[0].Action != batch.PodFailurePolicyActionFailJob || !slices.Equal(rules[0].OnExitCodes.Values, []int32{1, 2}) ||
		rules[1].Action != batch.PodFailurePolicyActionIgnore || rules[1].OnPodConditions[0].Type != core.DisruptionTarget {
		t.Errorf("the rules are %+v", rules)
	}
	if *job.ActiveDeadlineSeconds >= 300 {
		t.Errorf("Helm gives up after 300 s, and the check only after %d", *job.ActiveDeadlineSeconds)
	}
}

func TestNothingOfTheReleaseIsNeededForTheCheck(t *testing.T) {
	for values, want := range map[string]string{
		"": "pre-install,pre-upgrade",
		"extraObjects: [{apiVersion: v1, kind: Secret, metadata: {name: x}}]": "pre-upgrade", // the Secrets of edges may be among them
		"configCheck: {onInstall: false}":                                     "pre-upgrade",
	} {
		job := checkJob(t, rendered(t, minimal+values))
		if got := job.Annotations["helm.sh/hook"]; got != want {
			t.Errorf("%q: it runs at %q, want %q", values, got, want)
		}
		if account := job.Spec.Template.Spec.ServiceAccountName; account != "" {
			t.Errorf("%q: it needs the account %s, which is not there before an installation", values, account)
		}
	}
	account := &core.ServiceAccount{ObjectMeta: meta.ObjectMeta{Name: "t-agora", Namespace: "agora"}}
	for values, c := range map[string]cluster{
		"": {objects: []runtime.Object{account}},
		"serviceAccount: {create: false, name: t-agora}": {},
	} {
		if got := checkJob(t, c.rendered(t, minimal+values)).Spec.Template.Spec.ServiceAccountName; got != "t-agora" {
			t.Errorf("%q: with the account there it runs as %q", values, got)
		}
	}
	if _, is := rendered(t, minimal+"configCheck: {enabled: false}")["Job/t-agora-check"]; is {
		t.Error("it can't be turned off")
	}
}

// running is a cluster in which a release runs so many edges.
func running(replicas int32) cluster {
	return cluster{objects: []runtime.Object{&apps.Deployment{
		ObjectMeta: meta.ObjectMeta{Name: "t-agora", Namespace: "agora"}, Spec: apps.DeploymentSpec{Replicas: &replicas},
	}}}
}

// scaled is a cluster in which another than Helm has said how many edges there are, and Helm applies its objects by an
// operation.
func scaled(replicas int32, by meta.ManagedFieldsOperationType) cluster {
	c := running(replicas)
	c.objects[0].(*apps.Deployment).ManagedFields = []meta.ManagedFieldsEntry{
		{Manager: "helm", Operation: by, FieldsV1: &meta.FieldsV1{Raw: []byte(`{"f:spec":{"f:template":{}}}`)}},
		{Manager: "kube-controller-manager", Operation: meta.ManagedFieldsOperationUpdate, Subresource: "scale", FieldsV1: &meta.FieldsV1{Raw: []byte(`{"f:spec":{"f:replicas":{}}}`)}},
	}
	return c
}

func TestARunningReleaseKeepsItsNumberOfEdges(t *testing.T) {
	none := int32(-1)
	for _, c := range []struct {
		about, values string
		in            cluster
		want          int32
	}{
		{"the number is said", "replicas: 4", running(7), 4},
		{"none are to run", "replicas: 0", running(7), 0},
		{"the autoscaler is turned on", "autoscaling: {enabled: true}", running(7), 7},
		{"it is turned on, and few run", "autoscaling: {enabled: true}", running(1), 3},
		{"it has been stopped by hand", "autoscaling: {enabled: true}", running(0), 3},
		{"the autoscaler decides from the start", "autoscaling: {enabled: true}", cluster{}, none},
		{"the autoscaler has decided, and Helm 4 would be in conflict", "autoscaling: {enabled: true}", scaled(7, meta.ManagedFieldsOperationApply), none},
		{"it has decided, and Helm 3 would take it away", "autoscaling: {enabled: true}", scaled(7, meta.ManagedFieldsOperationUpdate), 7},
		{"it has been stopped by hand, with Helm 4", "autoscaling: {enabled: true}", scaled(0, meta.ManagedFieldsOperationApply), 3},
		{"others have decided, and Helm 4 would be in conflict", "replicas: null", scaled(7, meta.ManagedFieldsOperationApply), none},
		{"others have decided, and the number is said now", "replicas: 4", scaled(7, meta.ManagedFieldsOperationApply), 4},
		{"others decide", "replicas: null", running(7), 7},
		{"others have decided on none", "replicas: null", running(0), 0},
		{"others decide from the start", "replicas: null", cluster{}, none},
	} {
		got := none
		if r := edges(t, c.in.rendered(t, minimal+c.values)).Replicas; r != nil {
			got = *r
		}
		if got != c.want {
			t.Errorf("%s: %d edges, want %d", c.about, got, c.want)
		}
	}
}

func TestAnEdgeMakesRoomForTheNextWhereANodeHasItsPort(t *testing.T) {
	strategy := edges(t, rendered(t, minimal+"p2p: {hostPort: 9000}")).Strategy.RollingUpdate
	if strategy.MaxSurge.IntValue() != 0 || strategy.MaxUnavailable.IntValue() != 1 {
		t.Errorf("with a port of the node: %+v", strategy)
	}
	own := edges(t, rendered(t, minimal+"p2p: {hostPort: 9000}\nstrategy: {type: Recreate}")).Strategy
	if own.Type != apps.RecreateDeploymentStrategyType || own.RollingUpdate != nil {
		t.Errorf("what values say does not count: %+v", own)
	}
	if notes := (cluster{}).notes(t, minimal+"p2p: {hostPort: 9000}"); !strings.Contains(notes, "restricted forbid it") {
		t.Errorf("that the port is forbidden in most namespaces is not told:\n%s", notes)
	}
}

// An edge waits for NATS and Redis that come late, and Kubernetes for the edge.
func TestKubernetesWaitsLongerThanAnEdgeThatStarts(t *testing.T) {
	for _, values := range []string{"", "start: {timeoutSeconds: 1200}", "start: {timeoutSeconds: 1}", "config: {admin.tls.cert: /a, admin.tls.key: /b}"} {
		all := rendered(t, minimal+values)
		d := edges(t, all)
		timeout := int32(600)
		switch {
		case strings.Contains(values, "1200"):
			timeout = 1200
		case strings.Contains(values, "1}"):
			timeout = 1
		}
		if p := d.Template.Spec.Containers[0].StartupProbe; p.PeriodSeconds*p.FailureThreshold <= timeout {
			t.Errorf("%q: it is killed after %d s, and waits for %d", values, p.PeriodSeconds*p.FailureThreshold, timeout)
		}
		if *d.ProgressDeadlineSeconds <= timeout {
			t.Errorf("%q: the rollout has failed after %d s", values, *d.ProgressDeadlineSeconds)
		}
	}
	if config := settings(t, minimal+"start: {timeoutSeconds: 1200}"); !strings.Contains(config, "start.timeout: 1200s\n") {
		t.Errorf("an edge has\n%s", config)
	}
}

// What uses a password, or NATS' permissions, reads them when it starts.
func TestWhatUsesAChangedPasswordStartsAgain(t *testing.T) {
	trial := files(t)["trial.yaml"]
	before := rendered(t, trial)
	after := rendered(t, strings.Replace(trial, "only-for-a-trial", "another-one", 1))
	larger := rendered(t, strings.Replace(trial, "trial: {", "trial: { nats: {storage: 8Gi},", 1))
	for key, o := range before {
		if !strings.HasPrefix(key, "Deployment/") && !strings.HasPrefix(key, "StatefulSet/") {
			continue
		}
		template := func(o any) core.PodTemplateSpec {
			if d, is := o.(*apps.Deployment); is {
				return d.Spec.Template
			}
			return o.(*apps.StatefulSet).Spec.Template
		}
		if reflect.DeepEqual(template(o), template(after[key])) {
			t.Errorf("%s runs on with the old password", key)
		}
		if changed := !reflect.DeepEqual(template(o), template(larger[key])); changed != (key == "StatefulSet/t-agora-nats") {
			t.Errorf("%s starts again for another configuration of NATS: %t", key, changed)
		}
	}
}

// Edges that are not replaced yet have the password of before.
func TestRedisTakesThePasswordBeforeAsWell(t *testing.T) {
	trial := files(t)["trial.yaml"]
	for _, c := range []struct {
		about          string
		live, previous string // what the Secret of the release has
		want           string // beside the password of trial.yaml
	}{
		{"there is no release yet", "", "", ""},
		{"the password is the same", "only-for-a-trial", "", ""},
		{"it is the same, and was changed once", "only-for-a-trial", "first", "first"},
		{"it is changed", "first", "", "first"},
		{"it is changed once more", "second", "first", "second"},
		{"it is changed back", "second", "only-for-a-trial", "second"},
	} {
		var in cluster
		if c.live != "" {
			secret := &core.Secret{ObjectMeta: meta.ObjectMeta{Name: "t-agora-trial", Namespace: "agora"}, Data: map[string][]byte{"password": []byte(c.live)}}
			if c.previous != "" {
				secret.Data["previous"] = []byte(c.previous)
			}
			in.objects = append(in.objects, secret)
		}
		all := in.rendered(t, trial)
		if got := get[core.Secret](t, all, "Secret/t-agora-trial").StringData["previous"]; got != c.want {
			t.Errorf("%s: the Secret has %q, want %q", c.about, got, c.want)
		}
		redis := get[apps.StatefulSet](t, all, "StatefulSet/t-agora-redis").Spec.Template.Spec.Containers[0]
		if from := variable(redis.Env, "PREVIOUS").ValueFrom; slices.Contains(redis.Args, ">$(PREVIOUS)") != (c.want != "") || (from != nil) != (c.want != "") {
			t.Errorf("%s: Redis is started with %v and %v", c.about, redis.Args, redis.Env)
		}
	}
}
