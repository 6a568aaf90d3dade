package p2p

import (
	"cmp"
	"encoding/json"
	"net/http"
	"slices"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Card is what is read of an agent's own card. Its body is passed on as it is.
type Card struct {
	Name         string // empty where it says none
	Description  string
	Version      string
	Capabilities []string
	Skills       []Skill
	Body         json.RawMessage // the card itself, byte for byte
}

// Skill is something that an agent does when one of its paths is asked.
type Skill struct {
	Name        string // its "name", or "id", or path
	Description string
	Path        string          // as it was written, with {name} for a parameter; empty where it has none
	Methods     []string        // as they were written, from "method" and "methods"; nil where it has neither, for the usual ones
	Schema      json.RawMessage // its "schema" or "input_schema"; nil for none
}

// ReadCard reads an agent's card. It is lenient: a member that is not of its type, or too much, is as if it were not there. A [Fault] of the number 413 for one of
// more than max bytes, or [MaxCard] where that is 0, and of 502 for what is no JSON object. The card keeps b.
func ReadCard(b []byte, max int) (Card, error) {
	if max = cmp.Or(max, MaxCard); len(b) > max {
		return Card{}, NewFault(http.StatusRequestEntityTooLarge, "the agent's card is larger than %d bytes", max)
	}
	c := Card{Body: b}
	if rawjson.BadUTF8(b) >= 0 {
		return Card{}, NewFault(http.StatusBadGateway, "the agent's card is not valid UTF-8")
	}
	o := rawjson.NewObject(b, maxDepth)
	for o.Next() {
		switch string(o.Name()) {
		case "name":
			readText(&c.Name, o.Val)
		case "description":
			readText(&c.Description, o.Val)
		case "version":
			readText(&c.Version, o.Val)
		case "capabilities":
			c.Capabilities = namesIn(o.Val)
		case "skills":
			c.Skills = skillsIn(o.Val)
		}
	}
	if !o.End() {
		return Card{}, NewFault(http.StatusBadGateway, "the agent's card is no JSON object")
	}
	return c, nil
}

// Agent returns what the directory is to know of the agent, under an id. What [agora.Agent.Check] would refuse is cut or left out.
func (c *Card) Agent(id agora.AgentID) agora.Agent {
	a := agora.Agent{
		ID: id, Name: cmp.Or(c.Name, string(id)), Description: cut(c.Description, agora.MaxDescription), Version: cut(c.Version, agora.MaxCardWord),
		Capabilities: c.Capabilities, Dialect: Dialect, Registration: agora.Registration{Media: MediaCard, Body: c.Body},
	}
	names := map[string]bool{"": true}
	for _, s := range c.Skills {
		s.Name = cut(s.Name, agora.MaxSkillName)
		if names[s.Name] || len(a.Skills) == agora.MaxSkills {
			continue
		}
		names[s.Name] = true
		skill := agora.Skill{Name: s.Name, Description: cut(s.Description, agora.MaxDescription)}
		if isShallow(s.Schema) {
			skill.Schema = s.Schema
		}
		a.Skills = append(a.Skills, skill)
	}
	return a
}

// isShallow reports whether a schema, which is valid, is none that [agora.Agent.Check] refuses.
func isShallow(schema []byte) bool {
	if len(schema) == 0 {
		return false
	}
	s := rawjson.NewList(slices.Concat([]byte("["), schema, []byte("]")), agora.MaxSchemaDepth+1)
	return s.Next() && !s.Next() && s.End()
}

// skillsIn reads a list of skills: objects, or names alone.
func skillsIn(raw []byte) (all []Skill) {
	if raw[0] != '[' {
		return nil
	}
	for l := rawjson.NewList(raw, maxDepth); l.Next(); {
		var s Skill
		switch l.Val[0] {
		case '{':
			s = skillIn(l.Val)
		default:
			readText(&s.Name, l.Val)
		}
		if s.Name = cmp.Or(s.Name, s.Path); s.Name != "" {
			all = append(all, s)
		}
	}
	return all
}

func skillIn(raw []byte) (s Skill) {
	var id string
	for o := rawjson.NewObject(raw, maxDepth); o.Next(); {
		switch string(o.Name()) {
		case "name":
			readText(&s.Name, o.Val)
		case "id":
			readText(&id, o.Val)
		case "description":
			readText(&s.Description, o.Val)
		case "path":
			readText(&s.Path, o.Val)
		case "method", "methods":
			s.Methods = append(s.Methods, methodsIn(o.Val)...)
		case "schema", "input_schema":
			if c := o.Val[0]; c == '{' || c == 't' || c == 'f' {
				s.Schema = o.Val
			}
		}
	}
	s.Name = cmp.Or(s.Name, id)
	return s
}

// methodsIn reads a method, or a list of them. What should be one and is none is an empty one: [NewGuard] refuses that, rather than let through what the card did
// not mean.
func methodsIn(raw []byte) (all []string) {
	var s string
	switch raw[0] {
	case 'n':
		return nil
	case '[':
		for l := rawjson.NewList(raw, maxDepth); l.Next(); {
			s = ""
			readText(&s, l.Val)
			all = append(all, s)
		}
		if len(all) > 0 {
			return all
		}
	}
	readText(&s, raw)
	return []string{s}
}

// readText reads a string of whole characters; it leaves s as it is where raw is none.
func readText(s *string, raw []byte) {
	if raw[0] == '"' && !rawjson.Halved(raw) {
		*s = rawjson.Unquote(raw)
	}
}

// namesIn reads a list of strings, or the names of those members of an object that are true.
func namesIn(raw []byte) (all []string) {
	var s string
	switch raw[0] {
	case '[':
		for l := rawjson.NewList(raw, maxDepth); l.Next(); {
			s = ""
			if readText(&s, l.Val); s != "" {
				all = append(all, s)
			}
		}
	case '{':
		for o := rawjson.NewObject(raw, maxDepth); o.Next(); {
			if string(o.Val) == "true" {
				all = append(all, string(o.Name()))
			}
		}
	}
	return all
}
