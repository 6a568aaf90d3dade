package check

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"helm.sh/helm/v4/pkg/chart/v2/lint"
	"helm.sh/helm/v4/pkg/chart/v2/lint/support"
	core "k8s.io/api/core/v1"
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
		minimal + "autoscaling: {enabled: true}\nresources: {requests: {cpu: null}}": "resources.requests.cpu",
		minimal + "files: [{path: /x}]":                                              "needs secret or configMap",
		"auth: {mode: none}\nnats: {bundled: true}\nredis: {bundled: true}":          "trial.password must be given",
	} {
		if _, err := render(values); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("values %q: got %v, want %q", values, err, want)
		}
	}
}

// The settings are the program's own: it reads the file that the chart writes.
func TestTheProgramKnowsEverySettingThatTheChartWrites(t *testing.T) {
	agora := filepath.Join(t.TempDir(), "agora")
	build := exec.Command("go", "build", "-o", agora, "./cmd/agora")
	build.Dir = "../.."
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("go build: %v\n%s", err, out)
	}
	check := func(text string) string {
		file := filepath.Join(t.TempDir(), "agora.yaml")
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		var errs bytes.Buffer
		show := exec.Command(agora, "config", "show", "--config", file)
		show.Stderr = &errs
		if err := show.Run(); err != nil {
			return fmt.Sprintf("%v: %s", err, errs.String())
		}
		return ""
	}
	for name, values := range files(t) {
		config := get[core.ConfigMap](t, rendered(t, values), "ConfigMap/t-agora").Data["agora.yaml"]
		if fault := check(config); fault != "" {
			t.Errorf("%s: %s\n%s", name, fault, config)
		}
		if fault := check(config + "\nmailbox.max-agee: 1m\n"); fault == "" {
			t.Errorf("%s: a setting that does not exist is taken", name)
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
