package main

import (
	"regexp"
	"strings"
	"testing"

	"go.yaml.in/yaml/v3"
)

func TestABuildThatWasToldNothingSaysWhatItIsOnItsWayTo(t *testing.T) {
	// The program of tests has neither a module's version nor a revision, as that of an image without VERSION.
	if v := version(); v != coming+"-dev" {
		t.Errorf("version = %s, want %s-dev", v, coming)
	}
	var chart struct {
		AppVersion string `yaml:"appVersion"`
	}
	if err := yaml.Unmarshal([]byte(fileOf(t, "../../helm/agora/Chart.yaml")), &chart); err != nil {
		t.Fatal(err)
	}
	if chart.AppVersion != coming {
		t.Errorf("the chart is of %s, the program on its way to %s", chart.AppVersion, coming)
	}
}

func TestTheImageIsBuiltWithAVersion(t *testing.T) {
	dockerfile, compose, makefile := fileOf(t, "../../deploy/Dockerfile"), fileOf(t, "../../docker-compose.yml"), fileOf(t, "../../Makefile")
	for what, re := range map[string]string{
		"takes it":              `(?m)^ARG VERSION=$`,
		"gives it to the build": `-X main\.release=\$\{VERSION\}`,
		"labels the image":      `org\.opencontainers\.image\.version="\$\{VERSION\}"`,
		"finds the program":     `(?m)^ENV PATH=/usr/bin$`,
	} {
		if !regexp.MustCompile(re).MatchString(dockerfile) {
			t.Errorf("deploy/Dockerfile: nothing %s: no %s", what, re)
		}
	}
	if !strings.Contains(compose, "VERSION: ${AGORA_VERSION:-}") {
		t.Error("docker-compose.yml does not pass AGORA_VERSION on")
	}
	for _, line := range []string{"VERSION ?= $(shell git describe --tags --always --dirty", "AGORA_VERSION=$(VERSION) $(COMPOSE) up", "--build-arg VERSION=$(VERSION)"} {
		if !strings.Contains(makefile, line) {
			t.Errorf("the Makefile has no %s", line)
		}
	}
}

func TestTheVersionIsSaidByAFlagToo(t *testing.T) {
	var verb, flag, stderr strings.Builder
	if status := run(t.Context(), []string{"version"}, nil, &verb, &stderr); status != 0 {
		t.Fatalf("agora version exits with %d: %s", status, stderr.String())
	}
	if status := run(t.Context(), []string{"--version"}, nil, &flag, &stderr); status != 0 {
		t.Fatalf("agora --version exits with %d: %s", status, stderr.String())
	}
	if flag.String() != verb.String() {
		t.Errorf("agora --version = %q, want that of agora version: %q", flag.String(), verb.String())
	}
}
