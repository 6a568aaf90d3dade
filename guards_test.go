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

// TestThePagesNameTestsThatAreThere holds that every test which a page says guards something exists. A name that ends in … stands for all that begin so.
func TestThePagesNameTestsThatAreThere(t *testing.T) {
	t.Parallel()
	there := allTests(t)
	pages, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, page := range append(pages, "ARCHITECTURE.md", "CONTRIBUTING.md", "PROTOCOL.md", "README.md") {
		text, err := os.ReadFile(page)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range testNamed.FindAllStringSubmatch(string(text), -1) {
			named := func(test string) bool { return test == m[1] || m[2] != "" && strings.HasPrefix(test, m[1]) }
			if !slices.ContainsFunc(there, named) {
				t.Errorf("%s names %s%s, which is no test", page, m[1], m[2])
			}
		}
	}
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
