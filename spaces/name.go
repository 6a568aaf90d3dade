package spaces

import (
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

// The two types of spaces. Only the cluster and who has that right publish
// into a system space; it comes to be by its first join, and never by Create.
const (
	Public = presence.Public
	System = presence.System
)

// StatusSpace is the system space that always exists and tells who comes and goes.
const StatusSpace = "agent.status"

// MaxName is the longest name of a space, in bytes.
const MaxName = 128

// prefixes are the names that have a part behind a dot.
var prefixes = map[string]string{"task": Public, "agent": System, "file": System, "mcp": System}

// Type tells Public from System names; any other name is an INVALID_REQUEST
// error. Public are [a-z0-9_-]+ and task.*, system are agent.*, file.* and
// mcp.*; what follows the dot is of [a-zA-Z0-9_.-]+.
func Type(name string) (string, error) {
	if name == "" {
		return "", agora.Errorf(agora.InvalidRequest, "space name is empty")
	}
	if len(name) > MaxName {
		return "", agora.Errorf(agora.InvalidRequest, "space name is longer than %d characters", MaxName)
	}
	prefix, rest, dotted := strings.Cut(name, ".")
	if !dotted && !strings.ContainsFunc(name, notPlain) {
		return Public, nil
	}
	if typ := prefixes[prefix]; dotted && typ != "" && rest != "" && !strings.ContainsFunc(rest, notDotted) {
		return typ, nil
	}
	// The name is not repeated: it may be anything.
	return "", agora.Errorf(agora.InvalidRequest,
		"space name must be of a-z, 0-9, '_' and '-', or begin with 'task.', 'agent.', 'file.' or 'mcp.'")
}

func notPlain(r rune) bool {
	return !('a' <= r && r <= 'z' || '0' <= r && r <= '9' || r == '_' || r == '-')
}

func notDotted(r rune) bool { return notPlain(r) && r != '.' && !('A' <= r && r <= 'Z') }
