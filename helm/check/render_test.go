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
