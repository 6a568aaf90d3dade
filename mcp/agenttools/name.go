package agenttools

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
)

// Bounds of a tool's name: hosts of models accept 1 to 64 characters of [a-zA-Z0-9_-].
const (
	maxName    = 64
	hashDigits = 12
	maxStem    = maxName - 1 - hashDigits // what stands before "_" and the hash
	separator  = "__"
)

// toolName returns the name of an agent's tool as a tool of MCP: agent__tool where both are short and have no
// character that is not allowed, else something like it with a hash of both behind it. It depends on nothing but its
// arguments. Two tools never share a name, unless their hashes of 48 bits are equal.
func toolName(agent, tool string) string {
	if name := agent + separator + tool; plainAgent(agent) && allowed(tool) && len(name) <= maxName && !hashed(name) {
		return name
	}
	a, b := cleaned(agent, "agent"), cleaned(tool, "tool")
	half := (maxStem - len(separator)) / 2
	b = b[:min(len(b), max(half, maxStem-len(separator)-len(a)))]
	a = a[:min(len(a), maxStem-len(separator)-len(b))]
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %s%s", len(agent), agent, tool))
	return a + separator + b + "_" + hex.EncodeToString(sum[:])[:hashDigits]
}

// plainAgent reports whether an agent's id ends at the first separator of a name that begins with it: then the name
// says where the tool begins.
func plainAgent(id string) bool {
	return allowed(id) && !strings.Contains(id, separator) && !strings.HasSuffix(id, "_")
}

// hashed reports whether a name ends as those with a hash do. A plain name must not, or it could be that of another
// tool.
func hashed(name string) bool {
	at := len(name) - hashDigits
	if at < 1 || name[at-1] != '_' {
		return false
	}
	return strings.Trim(name[at:], "0123456789abcdef") == ""
}

func allowed(s string) bool {
	return s != "" && strings.IndexFunc(s, func(r rune) bool { return !allowedRune(r) }) < 0
}

func allowedRune(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9' || r == '_' || r == '-'
}

// cleaned returns the allowed characters of s, with one underscore for all that stands between them; instead of
// nothing, a word.
func cleaned(s, instead string) string {
	words := strings.FieldsFunc(s, func(r rune) bool { return !allowedRune(r) || r == '_' })
	if len(words) == 0 {
		return instead
	}
	return strings.Join(words, "_")
}
