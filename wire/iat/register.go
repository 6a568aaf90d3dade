package iat

import (
	"encoding/json"
	"fmt"
	"strings"
	"unicode"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// MediaRegister is the media type of an agent's Registration that is the payload of the action register, as it came.
const MediaRegister = "application/vnd.iat.register+json"

// MaxRoot bounds workspace_root, in runes.
const MaxRoot = 1024

// Registration is what the action register says (IAT §3.2, R03). Schemas are slices of the payload.
type Registration struct {
	Agent                              agora.AgentID // empty where the payload names none
	Name, Description, Domain, Version string        // each may be empty
	Tools                              []Tool        // nil where there are none
	Root                               string        // workspace_root (IAT §5), an absolute path; may be empty
}

// Tool is a tool that an agent declares (IAT §3.2, R04).
type Tool struct {
	Name, Description string
	Input, Output     json.RawMessage // JSON Schema: an object, true or false; nil where there is none
}

// Registration reads the payload of the action register. Errors are those of [CheckAction]. It looks at the form of the
// schemas alone, within the bounds of agora.Agent.Check.
func (e *Envelope) Registration() (Registration, error) {
	p := e.reader()
	r := p.registration()
	return r, p.err()
}

func (p *reader) registration() (r Registration) {
	p.read(
		member{key: "agent", read: func(path string, raw []byte) { p.agent(&r, path, raw) }},
		member{key: "tools", read: func(path string, raw []byte) { r.Tools = p.tools(path, raw) }},
		member{key: "workspace_root", read: func(path string, raw []byte) { r.Root = p.root(path, raw) }},
	)
	return r
}

// agent reads an agent: its id, or an object with that.
func (p *reader) agent(r *Registration, path string, raw []byte) {
	id := func(path string, raw []byte) {
		s := p.text(path, raw, 0)
		if p.wrong != nil {
			return
		}
		id, err := agora.ParseOwnID(s)
		if err != nil {
			p.refuse(path, "is no agent id: "+agora.AsError(err).Message)
		}
		r.Agent = id
	}
	if raw[0] == '"' {
		id(path, raw)
		return
	}
	if raw[0] != '{' {
		p.refuse(path, "must be an agent id, or an object with one")
		return
	}
	p.members(path, raw,
		member{key: "id", must: true, read: id},
		p.words("name", &r.Name, agora.MaxCardWord),
		p.words("description", &r.Description, agora.MaxDescription),
		p.words("domain", &r.Domain, agora.MaxCardWord),
		p.words("version", &r.Version, agora.MaxCardWord),
	)
}

// words is a member that is a string of at most so many runes.
func (p *reader) words(key string, into *string, most int) member {
	return member{key: key, read: func(path string, raw []byte) { *into = p.text(path, raw, most) }}
}

func (p *reader) tools(path string, raw []byte) (all []Tool) {
	names := map[string]struct{}{}
	p.each(path, raw, func(at string, raw []byte) {
		if len(all) == agora.MaxSkills {
			p.refuse(path, fmt.Sprintf("has more than %d entries", agora.MaxSkills))
			return
		}
		t := p.tool(at, raw)
		if _, twice := names[t.Name]; twice {
			p.refuse(at+"/name", "is the name of an earlier tool")
		}
		names[t.Name] = struct{}{}
		all = append(all, t)
	})
	return all
}

func (p *reader) tool(path string, raw []byte) (t Tool) {
	p.members(path, raw,
		member{key: "name", must: true, read: func(path string, raw []byte) {
			if t.Name = p.text(path, raw, agora.MaxSkillName); t.Name == "" {
				p.refuse(path, "is empty")
			}
		}},
		p.words("description", &t.Description, agora.MaxDescription),
		member{key: "input_schema", read: func(path string, raw []byte) { t.Input = p.schema(path, raw) }},
		member{key: "output_schema", read: func(path string, raw []byte) { t.Output = p.schema(path, raw) }},
	)
	return t
}

// schema looks at the form of a schema alone.
func (p *reader) schema(path string, raw []byte) json.RawMessage {
	switch raw[0] {
	case 't', 'f':
		return raw
	case '{':
		o := rawjson.NewObject(raw, agora.MaxSchemaDepth)
		for o.Next() {
		}
		if o.Failed() { // it is valid: it can only be too deep
			p.refuse(path, fmt.Sprintf("is deeper than %d", agora.MaxSchemaDepth))
			return nil
		}
		return raw
	}
	p.refuse(path, "must be an object, true or false")
	return nil
}

func (p *reader) root(path string, raw []byte) string {
	root := p.text(path, raw, MaxRoot)
	switch {
	case p.wrong != nil:
		return ""
	case !strings.HasPrefix(root, "/"):
		p.refuse(path, "must be an absolute path")
	case strings.ContainsFunc(root, unicode.IsControl):
		p.refuse(path, "has a control character")
	}
	return root
}

// RootOf returns the workspace_root that an agent registered with (IAT §5), "" for none.
func RootOf(card *agora.Agent) string { return registered(card).Root }

// OutputOf returns the output_schema that an agent registered for a tool, nil for none. It is a slice of the registration.
func OutputOf(card *agora.Agent, tool string) json.RawMessage {
	for _, t := range registered(card).Tools {
		if t.Name == tool {
			return t.Output
		}
	}
	return nil
}

// registered reads what an agent registered with; nothing where that is not of this dialect, or is not as it may be.
func registered(card *agora.Agent) Registration {
	if card == nil || card.Registration.Media != MediaRegister {
		return Registration{}
	}
	e := Envelope{Payload: card.Registration.Body}
	r, err := e.Registration()
	if err != nil {
		return Registration{}
	}
	return r
}
