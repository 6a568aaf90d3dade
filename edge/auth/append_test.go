package auth

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/edge"
)

func newLine(t *testing.T, name string) (token, line string) {
	t.Helper()
	token, line, err := NewToken(Line{Name: name, Agents: []string{name}})
	if err != nil {
		t.Fatal(err)
	}
	return token, line
}

func TestALineIsAppendedToATokenFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	jane, first := newLine(t, "jane")
	joe, second := newLine(t, "joe")
	if err := AppendLine(path, first); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("the new file has %v, %v, want 0600", info, err)
	}
	// Somebody has added to it, and changed who may read it.
	if err := os.WriteFile(path, []byte(first+"\n# by hand"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(path, 0o640); err != nil {
		t.Fatal(err)
	}
	if err := AppendLine(path, second); err != nil {
		t.Fatal(err)
	}
	b, err := os.ReadFile(path)
	if want := first + "\n# by hand\n" + second + "\n"; err != nil || string(b) != want {
		t.Errorf("the file says %q, %v, want %q", b, err, want)
	}
	if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("the file has %v, %v, want what it had", info, err)
	}
	way, err := TokenFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []string{jane, joe} {
		if !way.knows(edge.Credentials{Token: token}) {
			t.Errorf("%s is not known", token)
		}
	}
}

func TestALineThatAnEdgeWouldNotTakeIsNotAppended(t *testing.T) {
	path := filepath.Join(t.TempDir(), "tokens")
	_, first := newLine(t, "jane")
	_, again := newLine(t, "jane")
	if err := AppendLine(path, first); err != nil {
		t.Fatal(err)
	}
	if err := AppendLine(path, again); err == nil || !strings.Contains(err.Error(), "line 2: name or token stands in the file twice") {
		t.Errorf("a name that is there: %v", err)
	}
	if b, err := os.ReadFile(path); err != nil || string(b) != first+"\n" {
		t.Errorf("the file says %q, %v, want what it said", b, err)
	}
	if err := AppendLine(filepath.Join(path, "x"), first); err == nil {
		t.Error("a path that can't be is no error")
	}
}
