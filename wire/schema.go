package wire

import (
	"strings"
	"sync"
	"unicode"

	"github.com/agora-relay/agora"
)

// FrameSchema is what one side may send in frames of one type.
type FrameSchema struct {
	Type    string         // of the frame
	Client  bool           // whether clients send it; else the server does
	Summary string         // what it is for, in a few words
	Schema  map[string]any // JSON Schema 2020-12, in keywords that draft-07 has as well; nobody may change it
}

// Schemas returns the schema of every frame in either direction, in the order of PROTOCOL.md's table, made of the table that frames are decoded by: it takes what
// [DecodeRequest] with these limits, or [DecodeAnswer], takes. It can't say that no key stands twice, that halves of surrogate pairs are none, that integers are
// written with digits alone, and how deep values are; testdata/beyond_schemas.txt has an example of each.
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
	if rule := w.rule(s.name); rule != nil {
		out["allOf"] = []any{rule}
	}
	return out
}

// rule returns what concerns more than one field of a frame, as [decoder.settle] has it; nil for most.
func (w schemaWriter) rule(frame string) object {
	switch frame {
	case "send", "reply", "message":
		streams := object{"properties": object{"stream": object{"const": true}}, "required": []string{"stream"}}
		return object{"if": streams, "then": saying("stream_id")}
	case "agents.find":
		return object{"oneOf": []any{saying("skill"), saying("goal"), saying("to")}}
	case "cancel":
		if !w.client {
			return saying("stream_id")
		}
		return object{"oneOf": []any{saying("stream_id"), saying("request_id")}}
	case "space.publish.delta":
		return object{"properties": object{"data": object{"properties": object{"text": object{"type": "string"}}, "required": []string{"text"}}}}
	}
	return nil
}

// saying takes an object that has a member which says something.
func saying(member string) object {
	return object{"properties": object{member: object{"type": "string", "minLength": 1}}, "required": []string{member}}
}

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
	case kText:
		if w.client && u.field == fID && frame == "register" {
			return w.ownID()
		}
		return w.text(w.l.Name, u.required)
	case kCode:
		if frame == "handoff.result" {
			return integers(100, 999)
		}
		return w.text(w.l.Name, false)
	case kLongText:
		return w.text(max(w.l.Name, maxLongText), false)
	case kToken:
		return w.text(maxToken, false)
	case kPath:
		return w.text(maxPath, u.required)
	case kAgentID:
		return w.agentID(u.required)
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
		return w.card()
	case kCards:
		return w.list(w.listedAgent())
	case kTexts:
		return w.list(w.word())
	case kSpaces:
		if frame == "space.list" {
			return w.list(members(object{"id": w.word(), "type": w.word(), "member_count": integers(0, 1<<31-1)}))
		}
		return w.positions()
	case kFailure:
		return members(object{"code": w.word(), "message": w.long(), "path": w.long()})
	}
	return object{} // any value
}

func (w schemaWriter) card() object {
	card := members(object{
		"id": w.word(), "connection_id": w.word(), "type": orNull(w.word()), "domain": orNull(w.word()), "description": w.long(),
		"capabilities": orNull(w.list(w.word())), "metadata": orNull(object{"type": "object"}), "skills": w.skills(), "tools": w.skills(),
	})
	if w.client {
		card["properties"].(object)["id"] = w.ownID()
		card["required"] = []string{"id"}
	}
	return card
}

func (w schemaWriter) listedAgent() object {
	return members(object{
		"id": w.word(), "name": w.word(), "endpoint": orNull(w.word()), "registered_at": w.word(), "status": w.long(), "dialect": w.long(),
		"domain": w.long(), "description": w.long(), "type": w.long(), "version": w.long(), "peer": w.long(),
		"addresses": orNull(w.list(w.word())), "capabilities": orNull(w.list(w.word())), "metadata": orNull(object{"type": "object"}),
		"skills": w.skills(), "tools": w.skills(),
	})
}

// skills are the skills or tools of an agent, each an object or its name alone.
func (w schemaWriter) skills() object {
	named := members(object{"name": w.word(), "description": w.long(), "schema": object{}})
	return orNull(w.list(object{"anyOf": []any{w.word(), named}}))
}

// positions are positions by the names of spaces.
func (w schemaWriter) positions() object {
	return object{
		"type": "object", "additionalProperties": integers(0, agora.MaxSeq-1), "propertyNames": object{"maxLength": w.l.Name}, "maxProperties": w.l.Count,
	}
}

// members takes an object with some members that are known; any may be missing, and there may be others.
func members(known object) object { return object{"type": "object", "properties": known} }

func (w schemaWriter) list(of object) object {
	out := object{"type": "array", "items": of}
	if w.client {
		out["maxItems"] = w.l.Count
	}
	return out
}

// word is a string as short as names are.
func (w schemaWriter) word() object { return w.text(w.l.Name, false) }

// long is a string that may be a description, or null.
func (w schemaWriter) long() object {
	return orNull(w.text(max(w.l.Name, agora.MaxDescription), false))
}

// text is a string; of a client's, most bounds the characters, and one that must be there is not empty.
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

// agentID is an agent's id. Only those that clients write are checked.
func (w schemaWriter) agentID(there bool) object {
	id := w.text(min(w.l.Name, agora.MaxIDLength), false)
	if w.client || there {
		id["minLength"] = 1
	}
	if w.client {
		id["not"] = object{"type": "string", "pattern": unprintable()}
	}
	return id
}

// ownID is agentID for the id that an agent gives itself.
func (w schemaWriter) ownID() object {
	id := w.agentID(true)
	id["not"] = object{"anyOf": []any{id["not"], object{"const": string(agora.Cluster)}}}
	return id
}

// unprintable returns a pattern that finds what no agent id has: controls, spaces but the plain one, what only formats, and what is private. It has
// these characters themselves, as every language spells classes and escapes its own way; those beyond U+FFFF, and those that Unicode has not assigned, stand in PROTOCOL.md alone, as
// does which form of Unicode an id has. Spaces at its ends it finds, too.
var unprintable = sync.OnceValue(func() string {
	class := []rune{'['}
	for r, from := rune(0), rune(-1); r <= 1<<16; r++ {
		switch bad := r < 1<<16 && r != ' ' && unicode.In(r, unicode.Cc, unicode.Cf, unicode.Z, unicode.Co); {
		case bad && from < 0:
			from = r
		case !bad && from >= 0:
			class, from = append(class, from, '-', r-1), -1
		}
	}
	return "^ | $|" + string(append(class, ']'))
})

func integers(least, most uint64) object {
	return object{"type": "integer", "minimum": least, "maximum": most}
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
