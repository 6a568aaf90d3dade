package policy

import (
	"encoding/json"
	"strings"
)

// The names by which the claim of a token speaks of permissions.
var (
	listNames  = [verbs]string{Be: "agents", Send: "send", Join: "join", Publish: "publish", Create: "create", Approve: "approve"}
	wholeNames = [wholes]string{Reply: "reply", Directory: "directory", Relay: "relay"}
)

// MarshalJSON returns the claim that [ParseScope] reads as this scope.
func (s *Scope) MarshalJSON() ([]byte, error) {
	claim := map[string]any{}
	for v, ps := range s.patterns {
		if ps == nil {
			continue
		}
		texts := make([]string, len(ps))
		for i, p := range ps {
			texts[i] = p.String()
		}
		claim[listNames[v]] = texts
	}
	for w, said := range s.said {
		if said {
			claim[wholeNames[w]] = s.whole[w]
		}
	}
	return json.Marshal(claim)
}

// UnmarshalJSON is [ParseScope].
func (s *Scope) UnmarshalJSON(claim []byte) error {
	read, err := ParseScope(claim)
	if err == nil {
		*s = *read
	}
	return err
}

// String returns a text that parsePattern reads as the pattern.
func (p pattern) String() string {
	var b strings.Builder
	for _, piece := range p {
		switch piece.kind {
		case star:
			b.WriteByte('*')
		case name:
			b.WriteString(nameVariable)
		case literal:
			b.WriteString(escaped.Replace(piece.text))
		}
	}
	return b.String()
}

// escaped takes what means something in a pattern for what it is.
var escaped = strings.NewReplacer(`\`, `\\`, `*`, `\*`, `$`, `\$`)
