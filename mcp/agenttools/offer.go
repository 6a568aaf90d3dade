package agenttools

import (
	"maps"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// MaxTools is how many tools of agents are tools of the server each. Models choose badly among more.
const MaxTools = 40

// offering is a tool of the server.
type offering struct {
	fingerprint string
	tool        *mcp.Tool
	handler     mcp.ToolHandler
}

// offer brings the server's tools in step with those that are known: only what differs is added, replaced or removed,
// as hosts are told of each. It is called with refreshing held.
func (t *Catalog) offer(s *mcp.Server, all []tool) {
	want := make(map[string]offering)
	if len(all) > MaxTools {
		want[findName], want[callName] = t.findTool(), t.callTool()
	} else {
		for _, x := range all {
			want[x.mcpName] = t.offering(x)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(want)) {
		if o := want[name]; t.offered[name] != o.fingerprint {
			s.AddTool(o.tool, o.handler)
			t.offered[name] = o.fingerprint
		}
	}
	var gone []string
	for name := range t.offered {
		if _, ok := want[name]; !ok {
			gone = append(gone, name)
			delete(t.offered, name)
		}
	}
	s.RemoveTools(gone...)
}

// offering returns the tool of the server that a tool of an agent becomes.
func (t *Catalog) offering(x tool) offering {
	return offering{
		fingerprint: x.fingerprint(),
		tool:        &mcp.Tool{Name: x.mcpName, Title: x.name + " (" + x.agent + ")", Description: x.text(), InputSchema: x.schema},
		handler:     t.handle(x),
	}
}
