package check

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
	"helm.sh/helm/v3/pkg/lint"
	"helm.sh/helm/v3/pkg/lint/support"
	"sigs.k8s.io/yaml"
)

// renderByHelm3 returns the text of every template under values, as `helm template` of Helm 3 has it, by its name.
func renderByHelm3(values string) (map[string]string, error) {
	chart, err := loader.Load(chartDir)
	if err != nil {
		return nil, err
	}
	var given map[string]any
	if err := yaml.UnmarshalStrict([]byte(values), &given); err != nil {
		return nil, err
	}
	all, err := chartutil.ToRenderValues(chart, given, chartutil.ReleaseOptions{Name: "t", Namespace: "agora", IsInstall: true}, nil)
	if err != nil {
		return nil, err
	}
	return engine.Render(chart, all)
}

func TestHelm3MakesTheSame(t *testing.T) {
	for name, values := range files(t) {
		old, err := renderByHelm3(values)
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		texts, err := render(values)
		if err != nil {
			t.Fatal(err)
		}
		for _, template := range slices.Sorted(maps.Keys(texts)) {
			if old[template] != texts[template] {
				t.Errorf("%s: %s is\n%s\nby Helm 3, and by Helm 4\n%s", name, template, old[template], texts[template])
			}
		}
	}
}

func TestHelm3RefusesTheSame(t *testing.T) {
	for _, c := range wrong {
		if _, err := renderByHelm3(c.values); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: got %v, want %q", c.values, err, c.want)
		}
	}
}

func TestLintOfHelm3FindsNothing(t *testing.T) {
	for name, text := range files(t) {
		var values map[string]any
		if err := yaml.Unmarshal([]byte(text), &values); err != nil {
			t.Fatal(err)
		}
		for _, m := range lint.AllWithKubeVersion(chartDir, values, "agora", &chartutil.KubeVersion{Version: "v1.34.0", Major: "1", Minor: "34"}).Messages {
			if m.Severity > support.InfoSev {
				t.Errorf("%s: %s", name, m)
			}
		}
	}
}
