package wire

import (
	"maps"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// FrameSchema is what one side may send in frames of one type.
type FrameSchema struct {
	Type    string         // of the frame
	Client  bool           // whether clients send it; else the server does
	Summary string         // what it is for, in a few words
	Schema  map[string]any // JSON Schema 2020-12, in keywords that draft-07 has as well; nobody may change it
}

// Schemas returns the schema of every frame in either direction, in the order of PROTOCOL.md's table, made of the table that frames are decoded by. Clients are held to the
// limits. A schema says less than the decoder checks: that no key stands twice, that halves of surrogate pairs are none, how deep values are, and how a
// traceparent is spelt stand in PROTOCOL.md alone.
func Schemas(l Limits) []FrameSchema {
	l = l.withDefaults()
	var all []FrameSchema
	for _, r := range rows {
		for _, side := range []struct {
			client bool
			shape  *shape
		}{{true, table.requests[r.name]}, {false, table.answers[r.name]}} {
			if side.shape != nil {
				all = append(all, FrameSchema{r.name, side.client, summaries[r.name], frameSchema(side.shape, l, side.client)})
			}
		}
	}
	return all
}

type object = map[string]any

func frameSchema(s *shape, l Limits, client bool) object {
	w := schemaWriter{l, client}
	properties, required := object{"type": object{"const": s.name}}, []string{"type"}
	for _, u := range s.fields {
		key := fields[u.field].key
		value := w.value(s.name, u)
		if u.required {
			required = append(required, key)
		} else {
			value = orNull(value)
		}
		properties[key] = value
	}
	out := object{"type": "object", "properties": properties, "required": required}
	if rule := rules[s.name]; rule != nil && (client || s.name == "message") {
		out["allOf"] = []any{rule}
	}
	return out
}

// rules concern more than one field.
var rules = map[string]object{
	"send":                {"if": streams, "then": object{"required": []string{"stream_id"}}},
	"reply":               {"if": streams, "then": object{"required": []string{"stream_id"}}},
	"message":             {"if": streams, "then": object{"required": []string{"stream_id"}}},
	"agents.find":         {"oneOf": []any{saying("skill"), saying("goal"), saying("to")}},
	"space.publish.delta": {"properties": object{"data": object{"properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}}},
}

// saying takes an object that has a member which says something.
func saying(member string) object {
	return object{"properties": object{member: object{"type": "string", "minLength": 1}}, "required": []string{member}}
}

var streams = object{"properties": object{"stream": object{"const": true}}, "required": []string{"stream"}}

// orNull returns a schema that also takes null, which is as good as a field that is left out.
func orNull(schema object) object {
	if kind, ok := schema["type"].(string); ok {
		schema["type"] = []string{kind, "null"}
	}
	return schema
}

// schemaWriter writes schemas of values, for one side's frames.
type schemaWriter struct {
	l      Limits
	client bool // bounds count, and ids are checked
}

func (w schemaWriter) value(frame string, u use) object {
	spec := fields[u.field]
	switch spec.kind {
	case kText, kCode:
		if spec.kind == kCode && frame == "handoff.result" {
			return integers(100, 999)
		}
		text := w.text(w.l.Name, u.required)
		if w.client && spec.key == "id" && frame == "register" {
			text = w.ownID()
		}
		return text
	case kLongText:
		return w.text(max(w.l.Name, maxLongText), false)
	case kToken:
		return w.text(maxToken, false)
	case kPath:
		return w.text(maxPath, u.required)
	case kAgentID:
		return w.agentID()
	case kBool:
		return object{"type": "boolean"}
	case kNumber, kMillis:
		return integers(spec.min, agora.MaxSeq-1)
	case kIndex:
		return integers(0, 1<<32-1)
	case kCount:
		return integers(0, 1<<31-1)
	case kSeconds:
		return object{"type": "number"}
	case kString:
		return object{"type": "string"}
	case kObject:
		return object{"type": "object"}
	case kMaybe:
		return object{"type": []string{"string", "null"}}
	}
	return w.nested(frame, spec.kind)
}

// nested is value for lists and objects that Agora reads into, and for any value.
func (w schemaWriter) nested(frame string, k kind) object {
	switch k {
	case kTiers:
		return w.list(object{"enum": []string{"stored", "delivered", "acked"}})
	case kCard:
		card := w.members("type", "domain", "connection_id")
		id := w.text(w.l.Name, false)
		if w.client {
			id = w.ownID()
		}
		maps.Copy(card, object{
			"id": id, "description": orNull(w.text(max(w.l.Name, agora.MaxDescription), false)), "capabilities": orNull(w.list(w.text(w.l.Name, false))),
			"metadata": object{"type": []string{"object", "null"}}, "skills": orNull(w.list(w.skill())), "tools": orNull(w.list(w.skill())),
		})
		return object{"type": "object", "properties": card, "required": []string{"id"}}
	case kCards:
		listed := w.members("id", "name", "endpoint", "registered_at", "status", "dialect", "domain", "description", "type", "version", "peer")
		maps.Copy(listed, object{
			"addresses": orNull(w.list(object{"type": "string"})), "capabilities": orNull(w.list(object{"type": "string"})),
			"metadata": object{"type": []string{"object", "null"}}, "skills": orNull(w.list(w.skill())), "tools": orNull(w.list(w.skill())),
		})
		return w.list(object{"type": "object", "properties": listed, "required": []string{"id"}})
	case kTexts:
		return w.list(object{"type": "string"})
	case kSpaces:
		if frame == "space.list" {
			return w.list(object{"type": "object", "properties": object{"id": object{"type": "string"}, "type": object{"type": "string"}, "member_count": integers(0, 1<<31-1)}})
		}
		return object{"type": "object", "additionalProperties": integers(0, agora.MaxSeq-1)}
	case kFailure:
		return object{"type": "object", "properties": w.members("code", "message", "path")}
	}
	return object{} // any value
}

// members returns members that are strings, or null.
func (w schemaWriter) members(names ...string) object {
	all := object{}
	for _, name := range names {
		all[name] = orNull(w.text(w.l.Name, false))
		if name == "message" || name == "path" || name == "description" {
			all[name] = object{"type": []string{"string", "null"}}
		}
	}
	return all
}

// skill is one of a card's skills or tools.
func (w schemaWriter) skill() object {
	named := object{"type": "object", "properties": object{
		"name": w.text(w.l.Name, false), "description": orNull(w.text(max(w.l.Name, agora.MaxDescription), false)), "schema": object{"type": []string{"object", "boolean", "null"}},
	}}
	return object{"anyOf": []any{w.text(w.l.Name, false), named}}
}

func (w schemaWriter) list(of object) object {
	out := object{"type": "array", "items": of}
	if w.client {
		out["maxItems"] = w.l.Count
	}
	return out
}

func (w schemaWriter) text(most int, there bool) object {
	out := object{"type": "string"}
	if w.client {
		out["maxLength"] = most
	}
	if w.client && there {
		out["minLength"] = 1
	}
	return out
}

func (w schemaWriter) agentID() object {
	return object{"type": "string", "minLength": 1, "maxLength": agora.MaxIDLength}
}

// ownID is agentID for the id that an agent gives itself.
func (w schemaWriter) ownID() object {
	id := w.agentID()
	id["not"] = object{"const": string(agora.Cluster)}
	return id
}

func integers(least, most uint64) object {
	return object{"type": "integer", "minimum": least, "maximum": most}
}

// TypesOf returns the types of frames that a side sends, sorted.
func TypesOf(all []FrameSchema, client bool) (types []string) {
	for _, s := range all {
		if s.Client == client {
			types = append(types, s.Type)
		}
	}
	return slices.Sorted(slices.Values(types))
}

// summaries say what frames are for.
var summaries = func() map[string]string {
	all := map[string]string{}
	for line := range strings.Lines(summaryLines) {
		if name, text, ok := strings.Cut(strings.TrimSpace(line), ": "); ok {
			all[name] = text
		}
	}
	return all
}()

const summaryLines = `
send: sends an agent a message, or begins a stream to it
send_chunk: a piece of a stream
send_end: the normal end of a stream
message: a message, or the beginning of a stream, from an agent
message_chunk: a piece of a stream
message_end: the normal end of a stream
reply: a reply, whole or the beginning of a streamed one
reply_chunk: a piece of a streamed reply
reply_end: the normal end of a streamed reply
register: binds the connection to an agent id
registered: answers register
list: asks who is there
agents: the agents that have a session
agents.find: asks which agents fit a skill or a goal
agents.found: the agents that fit, the best first
call_tool: calls a tool of an agent
tool.chunk: a piece of what a tool answers
tool.result: the end of what a tool answers
card.get: asks an agent for its card
card: an agent's card, in its own words
handoff: hands a request to an agent
handoff.chunk: a piece of the answer to a handoff
handoff.result: the end of the answer to a handoff
cancel: gives up a stream, a call or a request
ack: acknowledges frames up to a position
receipt: tells how far frames have come
gap: tells which positions may be lost
agent.reconnect: asks to connect anew, as the edge is leaving
agent.refresh: presents other credentials
agent.refreshed: answers agent.refresh
agent.register: binds the connection to an agent, and says what that is
agent.registered: answers agent.register
agent.heartbeat: a sign of life
error: tells what went wrong, and with which frame or stream
space.join: makes the agent a member of a space
space.joined: answers space.join
space.leave: ends a membership
space.left: answers space.leave
space.create: makes a space
space.created: answers space.create
space.members: who is in a space, and who came or went
space.publish: publishes an event into a space, or begins a streamed one
space.publish.delta: a piece of a streamed event
space.publish.done: the normal end of a streamed event
space.published: tells the id of a streamed event
space.event: an event of a space
space.event.delta: a piece of an event
space.event.done: the normal end of an event in parts
space.event.cancel: an event in parts has no normal end
space.list: asks for the spaces that there are, or lists them
`
