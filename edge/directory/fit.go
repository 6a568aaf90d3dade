package directory

import (
	"encoding/json"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/budget"
)

// Fit returns agents with less of each, where they are too large together for an answer of so many bytes: see
// [budget.Fit]. Metadata count as a schema. size returns the bytes as which an agent is answered. leftOut names what
// was left out: "schemas", "descriptions", "agents". The agents given stay as they are.
func Fit(agents []agora.Agent, bytes int, size func(*agora.Agent) int) (fit []agora.Agent, leftOut []string) {
	items := make([]budget.Item, len(agents))
	for i := range agents {
		items[i] = itemOf(&agents[i], size(&agents[i]))
	}
	cut := budget.Fit(items, bytes)
	if leftOut = cut.LeftOut("agents"); leftOut == nil {
		return agents, nil
	}
	fit = slices.Clone(agents[:cut.Entries])
	for i := range fit {
		trim(&fit[i], &cut)
	}
	return fit, leftOut
}

func itemOf(a *agora.Agent, size int) budget.Item {
	item := budget.Item{Bytes: size, Schemas: []int{len(a.Metadata)}, Descriptions: []int{budget.JSON(a.Description)}}
	for _, all := range [...][]agora.Skill{a.Skills, a.Tools} {
		for _, s := range all {
			item.Schemas, item.Descriptions = append(item.Schemas, len(s.Schema)), append(item.Descriptions, budget.JSON(s.Description))
		}
	}
	return item
}

// trim takes from an agent what is left out, in the order of its item.
func trim(a *agora.Agent, cut *budget.Cut) {
	schema := func(of *json.RawMessage) {
		if !cut.KeepsSchema(len(*of)) {
			*of = nil
		}
	}
	description := func(of *string) {
		if !cut.KeepsDescription(budget.JSON(*of)) {
			*of = ""
		}
	}
	schema(&a.Metadata)
	description(&a.Description)
	for _, all := range [...]*[]agora.Skill{&a.Skills, &a.Tools} {
		*all = slices.Clone(*all)
		for i := range *all {
			schema(&(*all)[i].Schema)
			description(&(*all)[i].Description)
		}
	}
}
