package wire

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// setNested reads a field whose value is a list or an object that Agora reads
// into. These stand in rare frames; they may allocate.
func (d *decoder) setNested(f field, raw []byte) (what string) {
	t := d.frame
	switch fields[f].kind {
	case kTiers:
		t.Receipts, what = d.tiers(raw)
	case kCard:
		t.Agent, what = d.card(raw)
	case kCards:
		t.Agents, what = d.agents(raw)
	case kTexts:
		*t.texts(f), what = d.texts(raw)
	case kSpaces:
		return d.setSpaces(raw)
	case kFailure:
		t.Error, what = d.failure(raw)
	case kMaybe:
		var s *string
		s, what = maybe(raw)
		if f == fJoined {
			t.Joined = s
		} else {
			t.Left = s
		}
	}
	return what
}

// setSpaces reads "spaces": positions by name, but in space.list the spaces there are.
func (d *decoder) setSpaces(raw []byte) (what string) {
	if d.frame.Type == "space.list" {
		d.frame.Spaces, what = d.spaces(raw)
	} else {
		d.frame.Positions, what = d.positions(raw)
	}
	return what
}

// each calls visit with every element of a list.
func (d *decoder) each(raw []byte, visit func(raw []byte) string) string {
	if raw[0] != '[' {
		return "must be a list"
	}
	l := rawjson.NewList(raw, d.limits.Depth)
	for n := 0; l.Next(); n++ {
		if n == d.limits.Count {
			return fmt.Sprintf("has more than %d entries", d.limits.Count)
		}
		if what := visit(l.Val); what != "" {
			return what
		}
	}
	return ""
}

// members calls visit with every member of an object, and refuses a key that
// stands twice if it is one of keys.
func (d *decoder) members(raw []byte, visit func(key string, raw []byte) string, keys ...string) string {
	if raw[0] != '{' {
		return "must be an object"
	}
	seen := make(map[string]bool, len(keys))
	for _, k := range keys {
		seen[k] = false
	}
	o := rawjson.NewObject(raw, d.limits.Depth)
	for o.Next() {
		name, whole := o.Text()
		if !whole {
			return "has a key that " + rawjson.HalfPair
		}
		key := string(name)
		twice, known := seen[key]
		switch {
		case !known:
			continue
		case twice:
			return fmt.Sprintf("has %q twice", key)
		}
		seen[key] = true
		if what := visit(key, o.Val); what != "" {
			return fmt.Sprintf("has a %q that %s", key, what)
		}
	}
	return ""
}

func (d *decoder) tiers(raw []byte) (r agora.Receipts, what string) {
	what = d.each(raw, func(raw []byte) string {
		name, quoted := strings.CutPrefix(string(raw), `"`)
		name, ended := strings.CutSuffix(name, `"`)
		tier, ok := TierOf(name)
		if !ok || !quoted || !ended {
			return `must be a list of "stored", "delivered" and "acked"`
		}
		r |= tier
		return ""
	})
	return r, what
}

func (d *decoder) card(raw []byte) (*Agent, string) {
	a := new(Agent)
	what := d.members(raw, func(key string, raw []byte) (what string) {
		switch key {
		case "id":
			a.ID, what = d.word(raw)
		case "connection_id":
			a.ConnectionID, what = d.word(raw)
		case "type":
			a.Type, what = d.optional(raw)
		case "capabilities":
			if raw[0] != 'n' {
				a.Capabilities, what = d.texts(raw)
			}
		case "metadata":
			if raw[0] != 'n' {
				what = d.metadata(&a.Metadata, raw)
			}
		case "domain":
			a.Domain, what = d.optional(raw)
		case "description":
			a.Description, what = d.long(raw)
		case "skills":
			a.Skills, what = d.skills(raw)
		case "tools":
			a.Tools, what = d.skills(raw)
		}
		return what
	}, "id", "connection_id", "type", "capabilities", "metadata", "domain", "description", "skills", "tools")
	if what == "" && d.strict {
		if bad := ownID(a.ID); bad != "" {
			what = "has an id that " + bad
		}
	}
	return a, what
}

// metadata takes an object as it is, but for the members that Agora reads: as strings they must be text.
func (d *decoder) metadata(p *json.RawMessage, raw []byte) string {
	if what := setRaw(p, raw, kObject); what != "" {
		return what
	}
	o := rawjson.NewObject(raw, d.limits.Depth)
	for o.Next() {
		if key := string(o.Name()); (key == "name" || key == "endpoint") && o.Val[0] == '"' && rawjson.Halved(o.Val) {
			return fmt.Sprintf("has a %q that %s", key, rawjson.HalfPair)
		}
	}
	return ""
}

func (d *decoder) agents(raw []byte) ([]ListedAgent, string) {
	all := []ListedAgent{}
	what := d.each(raw, func(raw []byte) string {
		var a ListedAgent
		what := d.members(raw, func(key string, raw []byte) (what string) {
			switch key {
			case "id":
				a.ID, what = d.word(raw)
			case "name":
				a.Name, what = d.word(raw)
			case "endpoint":
				a.Endpoint, what = d.optional(raw)
			case "registered_at":
				a.RegisteredAt, what = d.word(raw)
			default:
				what = d.found(&a, key, raw)
			}
			return what
		}, "id", "name", "endpoint", "registered_at", "status", "dialect", "domain", "description", "type", "version", "peer",
			"addresses", "capabilities", "skills", "tools", "metadata")
		all = append(all, a)
		return what
	})
	return all, what
}

// found reads what agents.found says of an agent besides what agents does.
func (d *decoder) found(a *ListedAgent, key string, raw []byte) (what string) {
	texts := map[string]*string{
		"status": &a.Status, "dialect": &a.Dialect, "domain": &a.Domain, "description": &a.Description,
		"type": &a.Type, "version": &a.Version, "peer": &a.Peer,
	}
	switch p := texts[key]; {
	case p != nil:
		*p, what = d.long(raw)
	case raw[0] == 'n': // as good as absent
	case key == "addresses":
		a.Addresses, what = d.texts(raw)
	case key == "capabilities":
		a.Capabilities, what = d.texts(raw)
	case key == "skills":
		a.Skills, what = d.skills(raw)
	case key == "tools":
		a.Tools, what = d.skills(raw)
	case key == "metadata":
		what = setRaw(&a.Metadata, raw, kObject)
	}
	return what
}

// skills reads skills or tools, each an object or its name alone; null is none.
func (d *decoder) skills(raw []byte) ([]Skill, string) {
	if raw[0] == 'n' {
		return nil, ""
	}
	all := []Skill{}
	what := d.each(raw, func(raw []byte) string {
		s, what := d.skill(raw)
		if what != "" {
			return fmt.Sprintf("has at %d an entry that %s", len(all), what)
		}
		all = append(all, s)
		return ""
	})
	return all, what
}

func (d *decoder) skill(raw []byte) (s Skill, what string) {
	if raw[0] == '"' {
		s.Name, what = d.word(raw)
		return s, what
	}
	what = d.members(raw, func(key string, raw []byte) (what string) {
		switch key {
		case "name":
			s.Name, what = d.word(raw)
		case "description":
			s.Description, what = d.long(raw)
		case "schema":
			if raw[0] != 'n' {
				s.Schema = raw
			}
		}
		return what
	}, "name", "description", "schema")
	return s, what
}

func (d *decoder) spaces(raw []byte) ([]ListedSpace, string) {
	all := []ListedSpace{}
	what := d.each(raw, func(raw []byte) string {
		var s ListedSpace
		what := d.members(raw, func(key string, raw []byte) (what string) {
			switch key {
			case "id":
				s.ID, what = d.word(raw)
			case "type":
				s.Type, what = d.word(raw)
			case "member_count":
				var n uint64
				n, what = integer(raw, 0, 1<<31)
				s.MemberCount = int(n)
			}
			return what
		}, "id", "type", "member_count")
		all = append(all, s)
		return what
	})
	return all, what
}

// failure reads the error of a tool.result.
func (d *decoder) failure(raw []byte) (*Failure, string) {
	e := new(Failure)
	what := d.members(raw, func(key string, raw []byte) (what string) {
		switch key {
		case "code":
			e.Code, what = d.word(raw)
		case "message":
			e.Message, what = d.long(raw)
		case "path":
			e.Path, what = d.long(raw)
		}
		return what
	}, "code", "message", "path")
	return e, what
}

// positions reads {name: last_seq}. A name that stands twice is refused.
func (d *decoder) positions(raw []byte) (map[string]uint64, string) {
	if raw[0] != '{' {
		return nil, "must be an object"
	}
	all := map[string]uint64{}
	o := rawjson.NewObject(raw, d.limits.Depth)
	for o.Next() {
		key, whole := o.Text()
		if !whole {
			return nil, "has a position that " + rawjson.HalfPair
		}
		name := string(key)
		if _, twice := all[name]; twice {
			return nil, "has a space twice"
		}
		seq, what := integer(o.Val, 0, agora.MaxSeq)
		if what == "" {
			what = bounded(name, d.limits.Name)
		}
		if what != "" {
			return nil, "has a position that " + what
		}
		if all[name] = seq; len(all) > d.limits.Count {
			return nil, fmt.Sprintf("has more than %d entries", d.limits.Count)
		}
	}
	return all, ""
}

func (d *decoder) texts(raw []byte) ([]string, string) {
	all := []string{}
	what := d.each(raw, func(raw []byte) string {
		s, what := d.word(raw)
		if what != "" {
			return "has an entry that " + what
		}
		all = append(all, s)
		return ""
	})
	return all, what
}

// word reads a string.
func (d *decoder) word(raw []byte) (string, string) { return readText(raw, "", d.limits.Name) }

// long reads a string that may be a description, or null.
func (d *decoder) long(raw []byte) (string, string) {
	if raw[0] == 'n' {
		return "", ""
	}
	return readText(raw, "", max(d.limits.Name, agora.MaxDescription))
}

// optional reads a string or null.
func (d *decoder) optional(raw []byte) (string, string) {
	if raw[0] == 'n' {
		return "", ""
	}
	return d.word(raw)
}

// maybe reads a string or null into a pointer.
func maybe(raw json.RawMessage) (*string, string) {
	if raw[0] == 'n' {
		return nil, ""
	}
	if raw[0] != '"' {
		return nil, "must be a string or null"
	}
	s := rawjson.Unquote(raw)
	return &s, ""
}
