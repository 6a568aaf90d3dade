package agenttools

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agora-relay/agora"
)

// Bounds of what is kept of a card.
const (
	maxDescription = 1024     // bytes of a tool's description
	maxAbout       = 1024     // bytes of what an agent says of itself
	maxSchemas     = 64 << 10 // bytes of the schemas of one agent; those behind are left out
)

// tool is a tool of an agent, as it is offered.
type tool struct {
	agent, name string          // as the cluster knows it
	mcpName     string          // as MCP knows it
	description string          // of the tool, cut; may be empty
	about       string          // what its agent says of itself, cut; may be empty
	schema      json.RawMessage // of an object
	wrapped     bool            // the schema is in a wrapper
	leftOut     int             // bytes of the schema, where it was too large to be offered; else 0
}

// toolsOf returns the tools of a card.
func toolsOf(a agora.Agent) []tool {
	id, about := string(a.ID), cut(strings.TrimSpace(strings.Join([]string{a.Name, a.Description, a.Domain}, " ")), maxAbout)
	all, size := make([]tool, 0, min(len(a.Tools), agora.MaxSkills)), 0
	for _, s := range a.Tools[:min(len(a.Tools), agora.MaxSkills)] {
		x := tool{agent: id, name: s.Name, mcpName: toolName(id, s.Name), description: cut(s.Description, maxDescription), about: about}
		if size += len(s.Schema); len(s.Schema) > maxSchema || size > maxSchemas {
			x.leftOut, size = len(s.Schema), size-len(s.Schema)
			s.Schema = nil
		}
		x.schema, x.wrapped = inputSchema(s.Schema)
		all = append(all, x)
	}
	return all
}

// text is what a model learns of the tool.
func (x *tool) text() string {
	var b strings.Builder
	if x.description != "" {
		b.WriteString(x.description + "\n\n")
	}
	fmt.Fprintf(&b, "Tool %q of the agent %q.", x.name, x.agent)
	if x.leftOut > 0 {
		fmt.Fprintf(&b, " Its schema is too large to be shown (%d bytes); wrong arguments are answered with what is wrong with them.", x.leftOut)
	}
	return b.String()
}

// fingerprint is equal for two tools that look the same to a host and are called in the same way.
func (x *tool) fingerprint() string {
	return fmt.Sprintf("%t %q %q %s %s", x.wrapped, x.agent, x.name, x.schema, x.text())
}

// cut returns s, or what fits of it into so many bytes, with an ellipsis.
func cut(s string, most int) string {
	if len(s) <= most {
		return s
	}
	return strings.ToValidUTF8(s[:most], "") + "…"
}
