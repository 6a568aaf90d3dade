package install

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// machine is a project and a home in a directory of a test's own.
type machine struct {
	t *testing.T
	Config
}

func newMachine(t *testing.T, host string, scope Scope) *machine {
	t.Helper()
	at := t.TempDir()
	m := &machine{t, Config{Host: host, Scope: scope, Dir: filepath.Join(at, "project"), Home: filepath.Join(at, "home"), Program: "agora", Agent: "anna", System: "linux"}}
	for _, dir := range []string{m.Dir, m.Home} {
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return m
}

// has puts text into a file of the project.
func (m *machine) has(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.Dir, path)
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		m.t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		m.t.Fatal(err)
	}
}

func (m *machine) wants(path, want string) {
	m.t.Helper()
	b, err := os.ReadFile(filepath.Join(m.Dir, path))
	if err != nil || string(b) != want {
		m.t.Errorf("%s (%v) has\n%s\nwant\n%s", path, err, b, want)
	}
}

// writes writes, and returns what is said of that.
func (m *machine) writes() string {
	m.t.Helper()
	var b strings.Builder
	if err := planned(m.t, m.Config).Write(&b); err != nil {
		m.t.Fatal(err)
	}
	return b.String()
}

// refuses fails unless writing is refused for a reason, and nothing is there but what was.
func (m *machine) refuses(why string) {
	m.t.Helper()
	before := m.everything()
	if err := planned(m.t, m.Config).Write(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), why) {
		m.t.Errorf("the error is %v, want %q in it", err, why)
	}
	if after := m.everything(); after != before {
		m.t.Errorf("there is now\n%s\nand was\n%s", after, before)
	}
}

// everything returns all files and what they have.
func (m *machine) everything() string {
	m.t.Helper()
	var b strings.Builder
	err := filepath.Walk(filepath.Dir(m.Dir), func(path string, info os.FileInfo, err error) error {
		if err != nil || info.IsDir() {
			return err
		}
		text, err := os.ReadFile(path)
		b.WriteString(path + " " + info.Mode().String() + "\n" + string(text) + "\n")
		return err
	})
	if err != nil {
		m.t.Fatal(err)
	}
	return b.String()
}

func TestWritingAgainChangesNothingAndSaysSo(t *testing.T) {
	t.Parallel()
	for _, host := range Hosts() {
		for _, scope := range scopesOf(host) {
			m := newMachine(t, host, scope)
			if said := m.writes(); strings.Contains(said, " is as it was") || !strings.Contains(said, " now.\n") {
				t.Errorf("%s %s: the first time it says %q", host, scope, said)
			}
			before := m.everything()
			if said := m.writes(); !strings.Contains(said, " is as it was") || strings.Contains(said, " now.\n") {
				t.Errorf("%s %s: the second time it says %q", host, scope, said)
			}
			if after := m.everything(); after != before {
				t.Errorf("%s %s: there is now\n%s\nand was\n%s", host, scope, after, before)
			}
		}
	}
}

func TestNewFilesOfAUserAreForThatUserAlone(t *testing.T) {
	t.Parallel()
	for scope, want := range map[Scope]os.FileMode{User: 0o600, Project: 0o644} {
		for _, host := range Hosts() {
			if !slices.Contains(scopesOf(host), scope) {
				continue
			}
			m := newMachine(t, host, scope)
			m.writes()
			for _, f := range planned(t, m.Config).Files {
				if info, err := os.Stat(f.Path); err != nil || info.Mode().Perm() != want {
					t.Errorf("%s: %v, %v, want mode %v", f.Path, info, err, want)
				}
			}
		}
	}
}

func TestLinksAreFollowedAndModesStay(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "gemini", Project)
	m.has("dotfiles/gemini.json", `{"theme":"dark"}`)
	m.has(".gemini/other.json", "")
	at, link := filepath.Join(m.Dir, "dotfiles/gemini.json"), filepath.Join(m.Dir, ".gemini/settings.json")
	if err := os.Chmod(at, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("../dotfiles/gemini.json", link); err != nil {
		t.Fatal(err)
	}
	m.writes()
	if to, err := os.Readlink(link); err != nil || to != "../dotfiles/gemini.json" {
		t.Errorf("the link leads to %q, %v", to, err)
	}
	b, err := os.ReadFile(at)
	if err != nil || !strings.HasPrefix(string(b), "{\n  \"theme\": \"dark\",\n  \"mcpServers\": {") {
		t.Errorf("the file has %s, %v", b, err)
	}
	if info, err := os.Stat(at); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("its mode is %v, %v", info.Mode(), err)
	}
}

func TestALinkToNothingIsRefused(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "claude-code", Project)
	if err := os.Symlink("nowhere", filepath.Join(m.Dir, ".mcp.json")); err != nil {
		t.Fatal(err)
	}
	if err := planned(t, m.Config).Write(&strings.Builder{}); err == nil {
		t.Error("it is written, want an error")
	}
}

func TestAFileThatWasChangedMeanwhileIsLeftAsItIs(t *testing.T) {
	t.Parallel()
	m := newMachine(t, "claude-code", Project)
	e, err := planned(t, m.Config).Files[0].Edit()
	if err != nil {
		t.Fatal(err)
	}
	m.has(".mcp.json", `{"mcpServers":{"other":{}}}`)
	if err := e.Write(); err == nil || !strings.Contains(err.Error(), "was changed meanwhile") {
		t.Errorf("the error is %v", err)
	}
	m.wants(".mcp.json", `{"mcpServers":{"other":{}}}`)
	if all, err := os.ReadDir(m.Dir); err != nil || len(all) != 1 {
		t.Errorf("the directory has %v, %v", all, err)
	}
}
