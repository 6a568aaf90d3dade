package install

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// A project may be anybody's: what it has in place of a configuration must not lead the user who writes there to a file
// of his own.
func TestNoLinkLeadsOutOfTheProject(t *testing.T) {
	for about, links := range map[string]map[string]string{ // from a path in the project, to where
		"a file":                        {".gemini/settings.json": "../../home/target.json"},
		"a file, by an absolute path":   {".gemini/settings.json": "HOME/target.json"},
		"a directory":                   {".gemini": "../home"},
		"a directory, by its full path": {".gemini": "HOME"},
		"a link to a link":              {".gemini/settings.json": "../again", "again": "HOME/target.json"},
		"a directory behind a link":     {".gemini": "inside", "inside": "../home"},
	} {
		t.Run(about, func(t *testing.T) {
			m := newMachine(t, "gemini", Project)
			if err := os.WriteFile(filepath.Join(m.Home, "target.json"), []byte("{}"), 0o600); err != nil {
				t.Fatal(err)
			}
			m.links(links)
			m.stays(m.Home)
		})
	}
}

func TestNoLinkOfAUserLeadsOutOfHome(t *testing.T) {
	m := newMachine(t, "gemini", User)
	if err := os.Symlink(m.Dir, filepath.Join(m.Home, ".gemini")); err != nil {
		t.Fatal(err)
	}
	m.stays(m.Dir)
}

// Within them links are followed, as people keep what they have written elsewhere.
func TestLinksWithinTheProjectAreFollowed(t *testing.T) {
	for about, links := range map[string]map[string]string{
		"a file":      {".gemini/settings.json": "../kept.json"},
		"by its path": {".gemini/settings.json": "DIR/kept.json"},
		"a directory": {".gemini": "dotfiles"},
	} {
		t.Run(about, func(t *testing.T) {
			m := newMachine(t, "gemini", Project)
			m.has("kept.json", "{}")
			m.has("dotfiles/settings.json", "{}")
			m.links(links)
			m.writes()
			if info, err := os.Lstat(filepath.Join(m.Dir, ".gemini", "settings.json")); err != nil || about != "a directory" && info.Mode()&os.ModeSymlink == 0 {
				t.Errorf("the link is %v, %v", info, err)
			}
		})
	}
}

// stays fails unless writing is refused as a link leads out, and nothing has become of a directory.
func (m *machine) stays(dir string) {
	m.t.Helper()
	read := func() (all string) {
		m.t.Helper()
		for _, name := range []string{"target.json", "settings.json"} {
			b, err := os.ReadFile(filepath.Join(dir, name))
			all += string(b) + " " + strconv.FormatBool(err == nil) + "\n"
		}
		return all
	}
	before := read()
	if err := planned(m.t, m.Config).Write(&strings.Builder{}); err == nil || !strings.Contains(err.Error(), "leads out of") {
		m.t.Errorf("the error is %v", err)
	}
	if after := read(); after != before {
		m.t.Errorf("there is now\n%s\nand was\n%s", after, before)
	}
}

// links makes links in the project; HOME and DIR stand for the directories in their targets.
func (m *machine) links(all map[string]string) {
	m.t.Helper()
	for from, to := range all {
		for word, dir := range map[string]string{"HOME": m.Home, "DIR": m.Dir} {
			if rest, is := strings.CutPrefix(to, word); is {
				to = dir + rest
			}
		}
		from = filepath.Join(m.Dir, from)
		if err := os.MkdirAll(filepath.Dir(from), 0o755); err != nil {
			m.t.Fatal(err)
		}
		if err := os.Symlink(to, from); err != nil {
			m.t.Fatal(err)
		}
	}
}
