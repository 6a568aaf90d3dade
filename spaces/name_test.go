package spaces

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func TestTypeOfNames(t *testing.T) {
	for name, want := range map[string]string{
		"general": Public, "a": Public, "0-9_x": Public, "task.Build.42": Public, "task": Public,
		"agent": Public, "agent.status": System, "file.a-b_c": System, "mcp.x": System,
		strings.Repeat("a", MaxName): Public,
	} {
		if got, err := Type(name); err != nil || got != want {
			t.Errorf("Type(%q) = %q, %v, want %q", name, got, err, want)
		}
	}
}

func TestTypeRefusesOtherNames(t *testing.T) {
	for _, name := range []string{
		"", "General", "a b", "ü", "a.b", "task.", "agent.", "file.", "mcp.", ".task", "Task.x", "task.ü",
		"task.a b", "task.a/b", "task.*", "agent.>", "a\x00", "\xff", strings.Repeat("a", MaxName+1),
	} {
		got, err := Type(name)
		if e := agora.AsError(err); e == nil || e.Code != agora.InvalidRequest {
			t.Errorf("Type(%q) = %q, %v, want INVALID_REQUEST", name, got, err)
		}
	}
}
