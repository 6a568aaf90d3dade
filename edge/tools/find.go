package tools

import (
	"cmp"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// Query says which tools are looked for. What is empty does not matter.
type Query struct {
	Name  string        // of the tool, exactly
	Agent agora.AgentID // whose it is, exactly
	Q     string        // words, each of which stands in its name or its description, in any case
}

// Found is a tool and whose it is.
type Found struct {
	Agent agora.AgentID
	Tool  agora.Skill
}

// Find returns the tools of agents that a query means, by agent and then by name.
func Find(agents []agora.Agent, q Query) []Found {
	words := strings.Fields(fold(q.Q))
	var all []Found
	for _, a := range agents {
		if q.Agent != "" && a.ID != q.Agent {
			continue
		}
		for _, t := range a.Tools {
			if (q.Name == "" || t.Name == q.Name) && says(&t, words) {
				all = append(all, Found{a.ID, t})
			}
		}
	}
	slices.SortStableFunc(all, func(a, b Found) int {
		return cmp.Or(cmp.Compare(a.Agent, b.Agent), cmp.Compare(a.Tool.Name, b.Tool.Name))
	})
	return all
}

// says reports whether a tool says all words.
func says(t *agora.Skill, words []string) bool {
	if len(words) == 0 {
		return true
	}
	text := fold(t.Name + "\n" + t.Description)
	return !slices.ContainsFunc(words, func(w string) bool { return !strings.Contains(text, w) })
}

// fold makes texts equal that differ in case alone, in most scripts.
func fold(s string) string { return strings.ToLower(strings.ToUpper(s)) }
