package check

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	"sigs.k8s.io/yaml"
)

func TestHelmLintFindsNothing(t *testing.T) {
	for name, text := range files(t) {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.RunAll(chartDir, values, "agora").Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}

func TestEveryObjectIsOneOfKubernetesByEveryFileOfValues(t *testing.T) {
	for name, text := range files(t) {
		t.Run(name, func(t *testing.T) {
			if n := len(rendered(t, text)); n < 5 {
				t.Errorf("there are %d objects", n)
			}
		})
	}
}

func TestAFieldThatKubernetesDoesNotKnowIsFound(t *testing.T) {
	texts, err := render(minimal)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range [][3]string{
		{"agora/templates/deployment.yaml", "terminationGracePeriodSeconds:", "terminationGraceSeconds:"},
		{"agora/templates/deployment.yaml", "readOnlyRootFilesystem: true", "readOnlyRootFilesystem: really"},
		{"agora/templates/service.yaml", "targetPort: ws", "targetPorts: ws"},
		{"agora/templates/pdb.yaml", "policy/v1", "policy/v1beta1"},
	} {
		broken := map[string]string{c[0]: strings.Replace(texts[c[0]], c[1], c[2], 1)}
		if _, err := decode(broken); err == nil {
			t.Errorf("%s with %q is taken", c[0], c[2])
		}
	}
}

func TestValuesThatMakeNoSenseAreRefused(t *testing.T) {
	for values, want := range map[string]string{
		"":                                   "auth must be said",
		"auth: {mode: jwt}":                  "nats.url must be given",
		"auth: {mode: maybe}":                "/auth/mode",
		"auth: {mode: jwt, tokensSecret: x}": "only one of",
		minimal + "replica: 3":               "replica",
		minimal + "replicas: three":          "/replicas",
		minimal + "config: {addr: ':1'}":     "config: addr is the chart's to say",
		minimal + "ingress: {enabled: true}": "ingress.host must be given",
		minimal + "autoscaling: {enabled: true}\nresources: {requests: {cpu: null}}":                                                     "resources.requests.cpu",
		minimal + "files: [{path: /x}]":                                                                                                  "needs secret or configMap",
		minimal + "extraEnv: [{name: AGORA_CONFIG, value: /x}]":                                                                          "extraEnv: AGORA_CONFIG is the chart's to say",
		minimal + "extraEnv: [{value: x}]":                                                                                               "/extraEnv/0",
		minimal + "extraEnv: [{name: A, value: on}]":                                                                                     "/extraEnv/0/value",
		minimal + "resources: {limits: {memory: 1GB}}":                                                                                   "resources.limits.memory: 1GB",
		"auth: {mode: none}\nnats: {bundled: true}\nredis: {bundled: true}":                                                              "trial.password must be given",
		"auth: {mode: none}\ntrial: {password: x}\nredis: {bundled: true}\nnats: {bundled: true, url: ['nats://nats:4222']}":             "nats: only one of url and bundled",
		"auth: {mode: none}\ntrial: {password: x}\nnats: {url: ['nats://nats:4222']}\nredis: {bundled: true, url: 'redis://redis:6379'}": "redis: only one of url and bundled",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %q: got %v, want %q", values, err, want)
		}
	}
}

func TestWhatIsInTheChartTooIsTheSame(t *testing.T) {
	for ours, theirs := range map[string]string{
		"alerts.yml":            "prometheus/alerts.yml",
		"agora.json":            "grafana/agora.json",
		"edge-permissions.conf": "nats/edge-permissions.conf",
		"edge-redis.acl":        "redis/edge.acl",
	} {
		a, errA := os.ReadFile(filepath.Join(chartDir, "files", ours))
		b, errB := os.ReadFile(filepath.Join("../../deploy", theirs))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s is not deploy/%s: cp deploy/%[2]s helm/agora/files/%[1]s (%v, %v)", ours, theirs, errA, errB)
		}
	}
}
