package agora_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	testFunc  = regexp.MustCompile(`(?m)^func (?:\(.*\) )?((?:Test|Fuzz)\w+)\(`)
	testNamed = regexp.MustCompile("`((?:Test|Fuzz)[A-Z]\\w*)(…?)`")
)

// TestThePagesNameTestsThatAreThere holds that every test which a page says guards something exists. A name that ends
// in … stands for all that begin so.
func TestThePagesNameTestsThatAreThere(t *testing.T) {
	t.Parallel()
	there := allTests(t)
	for _, p := range pages(t) {
		for _, m := range testNamed.FindAllStringSubmatch(page(t, p), -1) {
			named := func(test string) bool { return test == m[1] || m[2] != "" && strings.HasPrefix(test, m[1]) }
			if !slices.ContainsFunc(there, named) {
				t.Errorf("%s names %s%s, which is no test", p, m[1], m[2])
			}
		}
	}
}

var (
	invariant = regexp.MustCompile(`^\*\*([^*]+)\*\* (.+)$`)
	scenario  = regexp.MustCompile(`"([^"]+)"`)
	guarded   = regexp.MustCompile("`[^`]+`|\"[^\"]+\"")
)

// TestEveryInvariantHasAGuard holds that each invariant of docs/invariants.md names what guards it, that the scenarios
// it names exist, and that the invariants of ARCHITECTURE.md stand there word for word.
func TestEveryInvariantHasAGuard(t *testing.T) {
	t.Parallel()
	all := map[string]bool{}
	for _, item := range items(page(t, "docs/invariants.md")) {
		m := invariant.FindStringSubmatch(item)
		if m == nil || !guarded.MatchString(m[2]) {
			t.Errorf("docs/invariants.md: want **a sentence** and the tests that guard it: %s", item)
			continue
		}
		all[m[1]] = true
		for _, s := range scenario.FindAllStringSubmatch(m[2], -1) {
			if !isScenario(t, s[1]) {
				t.Errorf("docs/invariants.md names the scenario %q, which is not in internal/party or internal/agoratest", s[1])
			}
		}
	}
	_, section, ok := strings.Cut(page(t, "ARCHITECTURE.md"), "\n## Invariants\n")
	if section, _, _ = strings.Cut(section, "\n## "); !ok || len(items(section)) == 0 {
		t.Error("ARCHITECTURE.md has no invariants")
	}
	for _, item := range items(section) {
		if !all[item] {
			t.Errorf("the invariant of ARCHITECTURE.md does not stand in docs/invariants.md word for word: %s", item)
		}
	}
}

// items returns the items of a text's lists, each on one line.
func items(text string) (all []string) {
	for line := range strings.Lines(text) {
		line = strings.TrimSuffix(line, "\n")
		if item, ok := strings.CutPrefix(line, "- "); ok {
			all = append(all, item)
		} else if rest, ok := strings.CutPrefix(line, "  "); ok && len(all) > 0 {
			all[len(all)-1] += " " + rest
		}
	}
	return all
}

// isScenario reports whether a suite of the doors has a scenario of that name.
func isScenario(t *testing.T, name string) bool {
	t.Helper()
	var files []string
	for _, dir := range []string{"internal/party", "internal/agoratest"} {
		in, err := filepath.Glob(dir + "/scene_*.go")
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, in...)
	}
	return slices.ContainsFunc(files, func(file string) bool { return strings.Contains(page(t, file), `"`+name+`"`) })
}

// allTests returns the names of all tests of the repository, those of its other modules included.
func allTests(t *testing.T) (names []string) {
	t.Helper()
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		text, err := os.ReadFile(path)
		for _, m := range testFunc.FindAllStringSubmatch(string(text), -1) {
			names = append(names, m[1])
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return names
}
