package wire

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Append appends f as JSON: any frame of either direction, the seed's fields
// in the seed's order and extensions after them. A field that is empty is left
// out unless its frame can't be without it; fields that the frame's type
// does not have are not written. Raw fields are spliced as they are. An unknown
// type is written with nothing but its type and id.
func (f *Frame) Append(dst []byte) []byte {
	dst = append(dst, `{"type":`...)
	dst = rawjson.AppendString(dst, f.Type)
	s := table.written[f.Type]
	if s == nil {
		s = &shape{fields: []use{{field: fID}}}
	}
	for _, u := range s.fields {
		if !u.always && !f.has(u.field) {
			continue
		}
		dst = append(dst, ',', '"')
		dst = append(dst, fields[u.field].key...)
		dst = append(dst, '"', ':')
		dst = f.appendField(dst, u.field)
	}
	return append(dst, '}')
}

// has reports whether a field is set.
func (f *Frame) has(id field) bool {
	switch fields[id].kind {
	case kText, kLongText, kToken, kAgentID, kPath:
		return *f.text(id) != ""
	case kCode:
		return f.Code != "" || f.StatusCode != 0
	case kBool:
		return *f.flag(id)
	case kNumber:
		return *f.number(id) != 0 || id == fLastSeq && f.HasLastSeq
	case kMillis:
		return *f.millis(id) != 0
	case kIndex:
		return f.HasIndex
	case kCount:
		return f.History != 0
	case kSeconds:
		return f.HeartbeatInterval != 0
	case kAny, kString, kObject:
		return *f.bytes(id) != nil
	case kTiers:
		return f.Receipts != 0
	case kCard:
		return f.Agent != nil
	case kCards:
		return f.Agents != nil
	case kTexts:
		return *f.texts(id) != nil
	case kSpaces:
		return f.Spaces != nil || f.Positions != nil
	case kFailure:
		return f.Error != nil
	}
	return false // joined and left are always written
}

func (f *Frame) appendField(dst []byte, id field) []byte {
	switch fields[id].kind {
	case kCode:
		if f.Type == "handoff.result" {
			return strconv.AppendInt(dst, int64(f.StatusCode), 10)
		}
		return rawjson.AppendString(dst, f.Code)
	case kText, kLongText, kToken, kAgentID, kPath:
		s := *f.text(id)
		if id == fID && s == "" {
			s = f.AgentID
		}
		return rawjson.AppendString(dst, s)
	case kBool:
		return strconv.AppendBool(dst, *f.flag(id))
	case kNumber:
		return strconv.AppendUint(dst, *f.number(id), 10)
	case kMillis:
		return strconv.AppendInt(dst, *f.millis(id), 10)
	case kIndex:
		return strconv.AppendUint(dst, uint64(f.Index), 10)
	case kCount:
		return strconv.AppendInt(dst, int64(f.History), 10)
	case kSeconds:
		return strconv.AppendFloat(dst, f.HeartbeatInterval, 'f', -1, 64)
	case kAny, kString, kObject:
		return appendRaw(dst, *f.bytes(id))
	}
	return f.appendNested(dst, id)
}

// appendNested appends the fields that [decoder.setNested] reads.
func (f *Frame) appendNested(dst []byte, id field) []byte {
	switch fields[id].kind {
	case kTiers:
		return appendTiers(dst, f.Receipts)
	case kCard:
		return f.Agent.append(dst)
	case kCards:
		return appendList(dst, f.Agents, ListedAgent.Append)
	case kTexts:
		texts := *f.texts(id)
		if texts == nil {
			return append(dst, "null"...)
		}
		return appendTexts(dst, texts)
	case kSpaces:
		if f.Spaces != nil {
			return appendList(dst, f.Spaces, ListedSpace.Append)
		}
		return appendPositions(dst, f.Positions)
	case kFailure:
		return f.Error.append(dst)
	}
	if id == fJoined {
		return appendMaybe(dst, f.Joined)
	}
	return appendMaybe(dst, f.Left)
}

// append appends an agent object: its id, then what is set. A nil one is only an empty id.
func (a *Agent) append(dst []byte) []byte {
	if a == nil {
		a = &Agent{}
	}
	dst = rawjson.AppendString(append(dst, `{"id":`...), a.ID)
	if a.ConnectionID != "" {
		dst = rawjson.AppendString(append(dst, `,"connection_id":`...), a.ConnectionID)
	}
	if a.Type != "" {
		dst = rawjson.AppendString(append(dst, `,"type":`...), a.Type)
	}
	if a.Capabilities != nil {
		dst = appendTexts(append(dst, `,"capabilities":`...), a.Capabilities)
	}
	if a.Metadata != nil {
		dst = append(append(dst, `,"metadata":`...), a.Metadata...)
	}
	dst = rawjson.AppendMember(dst, "domain", a.Domain)
	dst = rawjson.AppendMember(dst, "description", a.Description)
	dst = appendSkills(dst, "skills", a.Skills)
	dst = appendSkills(dst, "tools", a.Tools)
	return append(dst, '}')
}

func appendSkills(dst []byte, key string, all []Skill) []byte {
	if all == nil {
		return dst
	}
	dst = append(rawjson.AppendString(append(dst, ','), key), ':')
	return appendList(dst, all, Skill.append)
}

func (s Skill) append(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"name":`...), s.Name)
	dst = rawjson.AppendMember(dst, "description", s.Description)
	if s.Schema != nil {
		dst = append(append(dst, `,"schema":`...), s.Schema...)
	}
	return append(dst, '}')
}

// Append appends the agent as an object of JSON.
func (a ListedAgent) Append(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"id":`...), a.ID)
	dst = rawjson.AppendString(append(dst, `,"name":`...), a.Name)
	if a.Endpoint != "" {
		dst = rawjson.AppendString(append(dst, `,"endpoint":`...), a.Endpoint)
	}
	dst = rawjson.AppendString(append(dst, `,"registered_at":`...), a.RegisteredAt)
	for _, m := range [...]struct{ key, value string }{
		{"status", a.Status}, {"dialect", a.Dialect}, {"domain", a.Domain}, {"description", a.Description},
		{"type", a.Type}, {"version", a.Version}, {"peer", a.Peer},
	} {
		dst = rawjson.AppendMember(dst, m.key, m.value)
	}
	if a.Addresses != nil {
		dst = appendTexts(append(dst, `,"addresses":`...), a.Addresses)
	}
	if a.Capabilities != nil {
		dst = appendTexts(append(dst, `,"capabilities":`...), a.Capabilities)
	}
	dst = appendSkills(dst, "skills", a.Skills)
	dst = appendSkills(dst, "tools", a.Tools)
	if a.Metadata != nil {
		dst = append(append(dst, `,"metadata":`...), a.Metadata...)
	}
	return append(dst, '}')
}

// append appends an error object. A nil one has no code.
func (e *Failure) append(dst []byte) []byte {
	if e == nil {
		e = &Failure{}
	}
	dst = rawjson.AppendString(append(dst, `{"code":`...), e.Code)
	dst = rawjson.AppendString(append(dst, `,"message":`...), e.Message)
	return append(rawjson.AppendMember(dst, "path", e.Path), '}')
}

// Append appends the space as an object of JSON.
func (s ListedSpace) Append(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"id":`...), s.ID)
	dst = rawjson.AppendString(append(dst, `,"type":`...), s.Type)
	dst = strconv.AppendInt(append(dst, `,"member_count":`...), int64(s.MemberCount), 10)
	return append(dst, '}')
}

// appendList appends a JSON list of what each appends.
func appendList[T any](dst []byte, all []T, each func(T, []byte) []byte) []byte {
	dst = append(dst, '[')
	for i, v := range all {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = each(v, dst)
	}
	return append(dst, ']')
}

func appendTexts(dst []byte, all []string) []byte {
	return appendList(dst, all, func(s string, dst []byte) []byte { return rawjson.AppendString(dst, s) })
}

func appendTiers(dst []byte, r agora.Receipts) []byte {
	dst = append(dst, '[')
	for _, t := range tierNames {
		if r&t.tier == 0 {
			continue
		}
		if dst[len(dst)-1] != '[' {
			dst = append(dst, ',')
		}
		dst = rawjson.AppendString(dst, t.name)
	}
	return append(dst, ']')
}

// appendPositions appends them sorted by name, so that equal frames are equal bytes.
func appendPositions(dst []byte, all map[string]uint64) []byte {
	dst = append(dst, '{')
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(rawjson.AppendString(dst, name), ':')
		dst = strconv.AppendUint(dst, all[name], 10)
	}
	return append(dst, '}')
}

func appendMaybe(dst []byte, s *string) []byte {
	if s == nil {
		return append(dst, "null"...)
	}
	return rawjson.AppendString(dst, *s)
}

func appendRaw(dst []byte, raw json.RawMessage) []byte {
	if raw == nil {
		return append(dst, "null"...)
	}
	return append(dst, raw...)
}
