package host

import (
	"context"
	"fmt"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var whoTool = &mcp.Tool{
	Name:  "agora_who",
	Title: "Who is there",
	Description: "List the agents that can be reached now, and the spaces (shared channels). " +
		"Find one by what it can do with skill (a name) or goal (words), or learn all about one with agent, its tools and their schemas included. " +
		"Also says who you are, whether you are connected, and how many messages wait for you.",
	Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
}

type whoIn struct {
	Agent string `json:"agent,omitempty" jsonschema:"id of one agent, to learn all about it"`
	Skill string `json:"skill,omitempty" jsonschema:"name of a skill or tool: lists agents that have it, the best first"`
	Goal  string `json:"goal,omitempty" jsonschema:"what is to be done, in words: lists agents that fit, the best first"`
	Start int    `json:"start,omitempty" jsonschema:"where to go on in a long list: the value of next of the result before"`
}

type whoOut struct {
	You    youOut     `json:"you"`
	Agents []agentOut `json:"agents"`
	Spaces []spaceOut `json:"spaces,omitempty"`
	Next   int        `json:"next,omitempty" jsonschema:"call again with start set to this for the rest of the list"`
}

type youOut struct {
	ID        string   `json:"id"`
	Connected bool     `json:"connected"`
	Trouble   string   `json:"trouble,omitempty" jsonschema:"why there is no connection now"`
	Waiting   int      `json:"waiting" jsonschema:"messages in your mailbox that are not acknowledged: agora_inbox reads them"`
	Spaces    []string `json:"spaces" jsonschema:"spaces that you are a member of"`
}

type agentOut struct {
	ID          string     `json:"id"`
	Name        string     `json:"name,omitempty"`
	Type        string     `json:"type,omitempty"`
	Domain      string     `json:"domain,omitempty"`
	Description string     `json:"description,omitempty"`
	Status      string     `json:"status,omitempty"`
	Skills      []skillOut `json:"skills,omitempty"`
	Tools       []skillOut `json:"tools,omitempty"`
}

type skillOut struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	Schema      any    `json:"schema,omitempty" jsonschema:"JSON Schema of what it takes"`
}

type spaceOut struct {
	Name    string `json:"name"`
	Members int    `json:"members"`
}

// Bounds of what is told of one agent in a list.
const (
	maxDescription = 200 // bytes
	maxSkills      = 12
	maxShownSpaces = 20
)

func (h *Host) who(ctx context.Context, _ *mcp.CallToolRequest, in whoIn) (out whoOut, err error) {
	if in.Start < 0 {
		return out, fmt.Errorf("start is the value of next of the result before, or is left out")
	}
	c, err := h.link.client(ctx)
	if err != nil {
		return out, err
	}
	out.You = h.you()
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	out.Agents = []agentOut{}
	switch {
	case in.Agent != "":
		a, err := c.AgentCard(ctx, in.Agent)
		if err != nil {
			return out, h.failed(fmt.Sprintf("agent %.100q", in.Agent), err)
		}
		out.Agents = append(out.Agents, wholeAgent(a))
		return out, nil
	case in.Skill != "" || in.Goal != "":
		q := client.Query{Skill: in.Skill, Goal: in.Goal}
		if in.Skill != "" {
			q.Goal = ""
		}
		found, err := c.FindAgents(ctx, q)
		if err != nil {
			return out, h.failed("the directory", err)
		}
		out.list(found, in.Start)
		return out, nil
	}
	agents, err := c.Agents(ctx)
	if err != nil {
		return out, h.failed("the directory", err)
	}
	out.list(agents, in.Start)
	if in.Start > 0 {
		return out, nil
	}
	spaces, err := c.Spaces(ctx)
	if err != nil {
		return out, h.failed("the list of spaces", err)
	}
	for _, s := range spaces[:min(len(spaces), maxShownSpaces)] {
		out.Spaces = append(out.Spaces, spaceOut{s.Name, s.Members})
	}
	return out, nil
}

// you says how this host stands.
func (h *Host) you() youOut {
	y := youOut{ID: h.cfg.Client.Agent, Waiting: len(h.inbox.Peek()), Spaces: h.feeds.names()}
	if err := h.link.trouble(); err != nil {
		y.Trouble = err.Error()
	}
	_, y.Connected = h.link.standing()
	return y
}

// failed is advised for an error that may be due to the connection, of which more is known here.
func (h *Host) failed(about string, err error) error {
	if trouble := h.link.trouble(); trouble != nil && agora.AsError(err).Code == agora.Unavailable {
		return fmt.Errorf("%s: %w", about, trouble)
	}
	return advised(about, err)
}

// list adds agents from a place on, as many as there is room for.
func (o *whoOut) list(agents []agora.Agent, start int) {
	room := contentRoom
	for i := min(start, len(agents)); i < len(agents); i++ {
		a := shortAgent(agents[i])
		if room -= costOf(a.line()) + 15*(len(a.Skills)+len(a.Tools)) + 60; room < 0 && i > start {
			o.Next = i
			return
		}
		o.Agents = append(o.Agents, a)
	}
}

// shortAgent is what a list has of an agent.
func shortAgent(a agora.Agent) agentOut {
	out := wholeAgent(a)
	for _, all := range []*[]skillOut{&out.Skills, &out.Tools} {
		*all = (*all)[:min(len(*all), maxSkills)]
		for i := range *all {
			(*all)[i] = skillOut{Name: (*all)[i].Name}
		}
	}
	out.Description, _ = cut(out.Description, 0, maxDescription)
	return out
}

// wholeAgent is all that an agent says of itself, as far as it fits.
func wholeAgent(a agora.Agent) agentOut {
	room := maxResult - contentRoom
	skills := func(from []agora.Skill) (to []skillOut) {
		for _, s := range from {
			out := skillOut{Name: s.Name, Description: s.Description}
			if room -= len(s.Name) + len(s.Description) + len(s.Schema) + 50; room < 0 {
				out = skillOut{Name: s.Name}
			} else if s.Schema != nil {
				out.Schema = s.Schema
			}
			to = append(to, out)
		}
		return to
	}
	out := agentOut{
		ID: string(a.ID), Type: a.Type, Domain: a.Domain, Description: a.Description, Status: string(a.Status),
		Tools: skills(a.Tools), Skills: skills(a.Skills),
	}
	if a.Name != string(a.ID) {
		out.Name = a.Name
	}
	return out
}

// line is an agent in a line.
func (a agentOut) line() string {
	text := "- " + quote.Name(a.ID)
	for _, more := range []string{a.Name, a.Domain, a.Description} {
		if more != "" {
			text += ", " + quote.Line(more)
		}
	}
	for _, s := range []struct {
		what string
		all  []skillOut
	}{{"skills", a.Skills}, {"tools", a.Tools}} {
		if len(s.all) == 0 {
			continue
		}
		names := make([]string, len(s.all))
		for i, one := range s.all {
			names[i] = one.Name
		}
		text += "; " + s.what + ": " + listed(names)
	}
	return text
}

func (o whoOut) text() string {
	var b strings.Builder
	fmt.Fprintf(&b, "You are %s.", quote.Name(o.You.ID))
	if o.You.Trouble != "" {
		fmt.Fprintf(&b, " Not connected: %s.", o.You.Trouble)
	}
	if o.You.Waiting > 0 {
		fmt.Fprintf(&b, " In your mailbox wait: %s. Read them with agora_inbox.", counted(o.You.Waiting, "message"))
	}
	fmt.Fprintf(&b, "\n%s:\n", counted(len(o.Agents), "agent"))
	for _, a := range o.Agents {
		b.WriteString(a.line())
		if a.ID == o.You.ID {
			b.WriteString(" (you)")
		}
		b.WriteString("\n")
	}
	if o.Next > 0 {
		fmt.Fprintf(&b, "There are more: start=%d.\n", o.Next)
	}
	for i, s := range o.Spaces {
		if i == 0 {
			b.WriteString("Spaces:\n")
		}
		fmt.Fprintf(&b, "- %s (%s)\n", quote.Name(s.Name), counted(s.Members, "member"))
	}
	return b.String()
}
