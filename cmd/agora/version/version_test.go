package version

import (
	"os"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestABuildThatWasToldNothingSaysWhatItIsOnItsWayTo(t *testing.T) {
	// The program of tests has neither a module's version nor a revision, as that of an image without VERSION.
	if v := String(); v != coming+"-dev" {
		t.Errorf("version = %s, want %s-dev", v, coming)
	}
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	b, err := os.ReadFile("../../../helm/agora/Chart.yaml")
	if err != nil {
		t.Fatal(err)
	}
	if err := yaml.Unmarshal(b, &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != coming {
		t.Errorf("the chart is of %s, the program on its way to %s", chart.AppVersion, coming)
	}
}

func TestTheFirstPageNamesTheReleaseThatComes(t *testing.T) {
	page, err := os.ReadFile("../../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"agora-v" + coming + "-linux-amd64.tar.gz", "ghcr.io/agora-relay/agora:" + coming} {
		if !strings.Contains(string(page), name) {
			t.Errorf("README.md does not name %s", name)
		}
	}
}
