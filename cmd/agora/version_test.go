package main

import (
	"regexp"
	"strings"
	"testing"
)

func TestTheImageIsBuiltWithAVersion(t *testing.T) {
	dockerfile, compose, makefile := fileOf(t, "../../deploy/Dockerfile"), fileOf(t, "../../docker-compose.yml"), fileOf(t, "../../Makefile")
	for what, re := range map[string]string{
		"takes it":              `(?m)^ARG VERSION=$`,
		"gives it to the build": `-X github\.com/agora-relay/agora/cmd/agora/version\.release=\$\{VERSION\}`,
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
