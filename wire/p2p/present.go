package p2p

import (
	"net/http"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/budget"
	"github.com/agora-relay/agora/internal/rawjson"
)

// AppendCard appends the card of an agent of another dialect: {"id","name","description"?,"version"?,"dialect","capabilities"?,"skills","tools"?}. Its skills, and
// behind them its tools, each are {"name","description"?,"path","method","schema"?}: a skill's path is its name, a tool's is as [Request.Tool] reads it. "tools" are
// names.
func AppendCard(dst []byte, a *agora.Agent) []byte {
	dst = rawjson.AppendString(append(dst, `{"id":`...), string(a.ID))
	name := a.Name
	if name == "" {
		name = string(a.ID)
	}
	dst = rawjson.AppendMember(dst, "name", name)
	dst = rawjson.AppendMember(dst, "description", a.Description)
	dst = rawjson.AppendMember(dst, "version", a.Version)
	dst = rawjson.AppendMember(dst, "dialect", a.DialectName())
	if len(a.Capabilities) > 0 {
		dst = append(dst, `,"capabilities":`...)
		dst = appendList(dst, a.Capabilities, rawjson.AppendString)
	}
	dst = append(dst, `,"skills":[`...)
	for i, s := range a.Skills {
		dst = appendSkill(appendComma(dst, i), s, "", skillPath("", s.Name))
	}
	for i, t := range a.Tools {
		dst = appendSkill(appendComma(dst, len(a.Skills)+i), t, "", toolPath("", t.Name))
	}
	dst = append(dst, ']')
	if len(a.Tools) > 0 {
		dst = append(dst, `,"tools":`...)
		dst = appendList(dst, a.Tools, func(dst []byte, t agora.Skill) []byte { return rawjson.AppendString(dst, t.Name) })
	}
	return append(dst, '}')
}

// MaxClusterSkills bounds the skills of the cluster's own card.
const MaxClusterSkills = 256

// ClusterCard is the card of the cluster itself: of an edge whose own peer id was asked.
type ClusterCard struct {
	Name    string
	Version string
	Agents  int           // how many there are
	Able    []agora.Agent // some of them, whose skills and tools are told
}

// Append appends the card: {"name","version","agents","skills","left_out"?}, with at most [MaxClusterSkills] skills, each as in [AppendCard] and with the "agent" that has it. A
// path begins with /agents/{id}: see [Request.Target]. The card is no larger than [MaxCard]: the longest descriptions are left out for that, and then the last skills.
func (c *ClusterCard) Append(dst []byte) []byte {
	head := len(dst)
	dst = rawjson.AppendString(append(dst, `{"name":`...), c.Name)
	dst = rawjson.AppendMember(dst, "version", c.Version)
	dst = strconv.AppendInt(append(dst, `,"agents":`...), int64(c.Agents), 10)
	dst = append(dst, `,"skills":[`...)
	able := c.able()
	items := make([]budget.Item, len(able))
	var b []byte
	for i, s := range able {
		b = s.append(b[:0])
		items[i] = budget.Item{Bytes: len(b) + 1, Descriptions: []int{budget.JSON(s.Description)}}
	}
	cut := budget.Fit(items, MaxCard-(len(dst)-head)-len(`],"left_out":["descriptions","skills"]}`))
	for i, s := range able[:cut.Entries] {
		if !cut.KeepsDescription(budget.JSON(s.Description)) {
			s.Description = ""
		}
		dst = s.append(appendComma(dst, i))
	}
	dst = append(dst, ']')
	if leftOut := cut.LeftOut("skills"); leftOut != nil {
		dst = appendList(append(dst, `,"left_out":`...), leftOut, rawjson.AppendString)
	}
	return append(dst, '}')
}

// able is a skill or a tool, the agent that has it, and its path.
type able struct {
	agora.Skill
	agent agora.AgentID
	path  string
}

func (a able) append(dst []byte) []byte { return appendSkill(dst, a.Skill, a.agent, a.path) }

// able returns the skills and tools that the card tells of.
func (c *ClusterCard) able() (all []able) {
	for _, a := range c.Able {
		below := "/agents/" + Escape(string(a.ID))
		for _, s := range a.Skills {
			all = append(all, able{s, a.ID, skillPath(below, s.Name)})
		}
		for _, t := range a.Tools {
			all = append(all, able{t, a.ID, toolPath(below, t.Name)})
		}
		if len(all) >= MaxClusterSkills {
			return all[:MaxClusterSkills]
		}
	}
	return all
}

func skillPath(below, name string) string { return below + "/" + Escape(name) }
func toolPath(below, name string) string  { return below + "/tools/" + Escape(name) }

func appendSkill(dst []byte, s agora.Skill, id agora.AgentID, path string) []byte {
	dst = rawjson.AppendString(append(dst, `{"name":`...), s.Name)
	dst = rawjson.AppendMember(dst, "agent", string(id))
	dst = rawjson.AppendMember(dst, "description", s.Description)
	dst = rawjson.AppendMember(dst, "path", path)
	dst = rawjson.AppendMember(dst, "method", http.MethodPost)
	if s.Schema != nil {
		dst = append(append(dst, `,"schema":`...), s.Schema...)
	}
	return append(dst, '}')
}

func appendList[T any](dst []byte, all []T, one func([]byte, T) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range all {
		dst = one(appendComma(dst, i), v)
	}
	return append(dst, ']')
}

// appendComma appends the comma before an element that is not the first.
func appendComma(dst []byte, i int) []byte {
	if i == 0 {
		return dst
	}
	return append(dst, ',')
}
