package agora_test

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"unicode/utf8"
)

// bounds are how long the documents that a newcomer reads first may be.
var bounds = []struct {
	page           string
	lines, columns int // 0: any number
}{
	{page: "README.md", lines: 220},
	{page: "ARCHITECTURE.md", lines: 250, columns: 120},
	{page: "docs/performance.md", lines: 120},
}

func TestWhatANewcomerReadsFirstIsShort(t *testing.T) {
	t.Parallel()
	for _, b := range bounds {
		lines := strings.Split(strings.TrimSuffix(page(t, b.page), "\n"), "\n")
		if len(lines) > b.lines {
			t.Errorf("%s has %d lines, want at most %d: move what not everybody needs to docs/", b.page, len(lines), b.lines)
		}
		for k, line := range lines {
			if n := utf8.RuneCountInString(line); b.columns > 0 && n > b.columns {
				t.Errorf("%s:%d has %d characters, want at most %d: wrap it", b.page, k+1, n, b.columns)
			}
		}
	}
}

// pages are the documents that a test may hold against what is there.
func pages(t *testing.T) []string {
	t.Helper()
	all, err := filepath.Glob("docs/*.md")
	if err != nil {
		t.Fatal(err)
	}
	return append(all, "ARCHITECTURE.md", "CONTRIBUTING.md", "PROTOCOL.md", "README.md")
}

// fileNamed is a file of Go, with its folder. With … it stands for several.
var fileNamed = regexp.MustCompile("`([a-z0-9]+(?:/[a-z0-9_]+)+\\.go)`")

func TestThePagesNameFilesThatAreThere(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, m := range fileNamed.FindAllStringSubmatch(page(t, p), -1) {
			if _, err := os.Stat(m[1]); err != nil {
				t.Errorf("%s names %s, which is not there: name the file that has its functions now", p, m[1])
			}
		}
	}
}

var (
	link   = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	anchor = regexp.MustCompile(`[^\p{L}\p{N} _-]`)
	title  = regexp.MustCompile(`(?m)^#+ (.*)$`)
	code   = regexp.MustCompile("(?ms)^```.*?^```$|`[^`\n]*`")
)

// TestLinksBetweenThePagesLeadSomewhere holds that the file of every link between documents is there, and has the
// section that it names.
func TestLinksBetweenThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	for _, p := range pages(t) {
		for _, m := range link.FindAllStringSubmatch(code.ReplaceAllString(page(t, p), ""), -1) {
			if strings.Contains(m[1], "://") {
				continue
			}
			file, section, _ := strings.Cut(m[1], "#")
			if file = filepath.Join(filepath.Dir(p), file); strings.HasPrefix(m[1], "#") {
				file = p
			}
			if _, err := os.Stat(file); err != nil {
				t.Errorf("%s links to %s, which is not there", p, m[1])
			} else if section != "" && strings.HasSuffix(file, ".md") && !hasSection(page(t, file), section) {
				t.Errorf("%s links to %s, which has no such section", p, m[1])
			}
		}
	}
}

// hasSection reports whether a text has a heading with an anchor, as GitHub makes them.
func hasSection(text, name string) bool {
	for _, m := range title.FindAllStringSubmatch(text, -1) {
		if strings.ReplaceAll(anchor.ReplaceAllString(strings.ToLower(m[1]), ""), " ", "-") == name {
			return true
		}
	}
	return false
}
