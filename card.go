package agora

import (
	"bytes"
	"encoding/json"
	"fmt"
	"unicode/utf8"
)

// Bounds of what an agent says of itself, beside the size of all of it together: see [Agent.Check].
const (
	MaxSkills      = 256  // skills, and as many tools
	MaxSkillName   = 128  // runes of the name of one
	MaxDescription = 4096 // runes of each description
	MaxCardWord    = 256  // runes of domain, version, dialect and peer id
	MaxAddresses   = 64   // of a peer
	MaxAddress     = 512  // runes of each
	MaxSchemaDepth = 32   // nesting of a schema
)

// Check returns an [InvalidRequest] error that names the place where the agent's card is not as it may be, such as
// "skills[3].schema is deeper than 32"; nil where it is. limit bounds the bytes of all of it together. Every card is
// checked by it before it is kept, whatever its dialect.
func (a *Agent) Check(limit int) error {
	if _, err := ParseOwnID(string(a.ID)); err != nil {
		return err
	}
	if a.Size() > limit {
		return Errorf(InvalidRequest, "card is larger than %d bytes", limit)
	}
	fault := first(
		func() string { return inWord("dialect", a.Dialect, MaxCardWord) },
		func() string { return inWord("domain", a.Domain, MaxCardWord) },
		func() string { return inWord("version", a.Version, MaxCardWord) },
		func() string { return inWord("peer", a.Peer, MaxCardWord) },
		func() string { return inWord("description", a.Description, MaxDescription) },
		func() string { return inSkills("skills", a.Skills) },
		func() string { return inSkills("tools", a.Tools) },
		func() string { return inAddresses(a.Addresses) },
	)
	if fault != "" {
		return Errorf(InvalidRequest, "%s", fault)
	}
	return nil
}

// Size returns the bytes of what the card says.
func (a *Agent) Size() int {
	n := len(a.ID) + len(a.Name) + len(a.Endpoint) + len(a.Type) + len(a.Metadata) + len(a.Dialect) + len(a.Domain) +
		len(a.Description) + len(a.Version) + len(a.Peer) + len(a.Registration.Media) + len(a.Registration.Body)
	for _, texts := range [...][]string{a.Capabilities, a.Addresses} {
		for _, s := range texts {
			n += len(s)
		}
	}
	for _, skills := range [...][]Skill{a.Skills, a.Tools} {
		for _, s := range skills {
			n += len(s.Name) + len(s.Description) + len(s.Schema)
		}
	}
	return n
}

// Bare reports whether the card says nothing but its agent's id, and the dialect that it speaks.
func (a *Agent) Bare() bool {
	return (a.Name == "" || a.Name == string(a.ID)) && a.Size()-len(a.Name)-len(a.Dialect) == len(a.ID) &&
		len(a.Capabilities)+len(a.Skills)+len(a.Tools)+len(a.Addresses) == 0
}

// first returns the first fault that one of checks finds; "" for none.
func first(checks ...func() string) string {
	for _, check := range checks {
		if fault := check(); fault != "" {
			return fault
		}
	}
	return ""
}

func inWord(place, s string, most int) string {
	switch {
	case !utf8.ValidString(s):
		return place + " is not valid UTF-8"
	case len(s) > most && utf8.RuneCountInString(s) > most:
		return fmt.Sprintf("%s is longer than %d characters", place, most)
	}
	return ""
}

func inAddresses(all []string) string {
	if len(all) > MaxAddresses {
		return fmt.Sprintf("addresses has more than %d entries", MaxAddresses)
	}
	for i, s := range all {
		if fault := inWord(fmt.Sprintf("addresses[%d]", i), s, MaxAddress); fault != "" {
			return fault
		}
	}
	return ""
}

func inSkills(place string, all []Skill) string {
	if len(all) > MaxSkills {
		return fmt.Sprintf("%s has more than %d entries", place, MaxSkills)
	}
	names := make(map[string]struct{}, len(all))
	for i, s := range all {
		if fault := inSkill(fmt.Sprintf("%s[%d]", place, i), s); fault != "" {
			return fault
		}
		if _, twice := names[s.Name]; twice {
			return fmt.Sprintf("%s[%d].name stands twice", place, i)
		}
		names[s.Name] = struct{}{}
	}
	return ""
}

func inSkill(place string, s Skill) string {
	if s.Name == "" {
		return place + ".name is missing"
	}
	return first(
		func() string { return inWord(place+".name", s.Name, MaxSkillName) },
		func() string { return inWord(place+".description", s.Description, MaxDescription) },
		func() string { return inSchema(place+".schema", s.Schema) },
	)
}

// inSchema looks at the form of a schema alone: what it means is for who uses it.
func inSchema(place string, schema json.RawMessage) string {
	switch {
	case schema == nil:
		return ""
	case depth(schema) > MaxSchemaDepth: // before it is parsed
		return fmt.Sprintf("%s is deeper than %d", place, MaxSchemaDepth)
	case !utf8.Valid(schema):
		return place + " is not valid UTF-8"
	case !json.Valid(schema):
		return place + " is not JSON"
	}
	switch bytes.TrimLeft(schema, " \t\r\n")[0] { // it is valid
	case '{', 't', 'f':
		return ""
	}
	return place + " must be an object, true or false"
}

// depth returns how deep objects and lists are nested in JSON.
func depth(b []byte) (most int) {
	now, quoted := 0, false
	for i := 0; i < len(b); i++ {
		switch c := b[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			most = max(most, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return most
}
