//go:build interop

package mcp

import (
	"maps"
	"net/http/httptest"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// scenarios are those of the conformance suite that a server with these tools and this resource can pass, by the
// generation of the protocol in which they are played; not_applicable.txt has the others.
var scenarios = map[string][]string{
	"2025-11-25": {"server-initialize", "ping", "tools-list", "resources-list"},
	"2026-07-28": {"tools-list", "resources-list", "sep-2164-resource-not-found", "caching", "input-required-result-unsupported-methods"},
}

var listedScenario = regexp.MustCompile(`(?m)^\s*- (\S+) \[`)

func TestTheConformanceSuitePasses(t *testing.T) {
	b := &bridge{t: t, edge: start(t)[0], sessions: map[string]*piped{}}
	server := httptest.NewServer(b)
	defer b.close()
	defer server.Close()
	suite := needs(t, "node/node_modules/.bin/conformance")
	for generation, all := range scenarios {
		for _, scenario := range all {
			plays(t, node(t), suite, "server", "--url", server.URL, "--scenario", scenario, "--spec-version", generation, "-o", t.TempDir())
		}
	}
}

func TestEveryScenarioOfTheSuiteIsPlayedOrMakesNoSense(t *testing.T) {
	t.Parallel()
	list, err := os.ReadFile("not_applicable.txt")
	if err != nil {
		t.Fatal(err)
	}
	known := slices.Concat(slices.Collect(maps.Values(scenarios))...)
	for line := range strings.Lines(string(list)) {
		if name, _, _ := strings.Cut(line, " "); name != "#" {
			known = append(known, name)
		}
	}
	listed := listedScenario.FindAllStringSubmatch(plays(t, node(t), needs(t, "node/node_modules/.bin/conformance"), "list", "--server"), -1)
	for _, m := range listed {
		if !slices.Contains(known, m[1]) {
			t.Errorf("the suite has a scenario %s that is neither played nor said to make no sense here", m[1])
		}
	}
	if len(listed) < len(scenarios) {
		t.Errorf("the suite lists %v", listed)
	}
}
