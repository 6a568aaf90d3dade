package wire

import "strings"

// AsyncAPI returns what clients and edges say to each other at /ws, as a document of AsyncAPI 3 from the edge's point of view: it receives what clients send. It is made of
// [Schemas], with the limits of the edge that shows it.
func AsyncAPI(l Limits) map[string]any {
	messages, components := object{}, object{}
	sides := map[bool][]any{}
	for _, s := range Schemas(l) {
		name := messageName(s)
		components[name] = object{
			"name": s.Type, "title": s.Type, "summary": s.Summary, "contentType": "application/json", "payload": s.Schema,
		}
		messages[name] = object{"$ref": "#/components/messages/" + name}
		sides[s.Client] = append(sides[s.Client], object{"$ref": "#/channels/ws/messages/" + name})
	}
	channel := object{"$ref": "#/channels/ws"}
	return object{
		"asyncapi": "3.0.0",
		"info": object{
			"title": "Agora relay and Agora spaces", "version": "1.0.0",
			"description": "The frames of a WebSocket to any edge. PROTOCOL.md says what they mean, and what a schema can't.",
			"license":     object{"name": "Apache-2.0", "url": "https://www.apache.org/licenses/LICENSE-2.0"},
		},
		"defaultContentType": "application/json",
		"channels": object{"ws": object{
			"address": "/ws", "title": "A connection of an agent", "messages": messages,
			"bindings": object{"ws": object{"method": "GET", "query": object{"type": "object", "properties": object{
				"agent_id": object{"type": "string"}, "token": object{"type": "string"}, "last_seq": object{"type": "integer"},
				"resume_token": object{"type": "string"}, "receipts": object{"type": "string"},
			}}}},
		}},
		"operations": object{
			"fromClient": object{"action": "receive", "channel": channel, "title": "What clients send", "messages": sides[true]},
			"fromServer": object{"action": "send", "channel": channel, "title": "What the edge sends", "messages": sides[false]},
		},
		"components": object{"messages": components},
	}
}

// messageName returns the name of a frame among the messages of the document: its type in one direction.
func messageName(s FrameSchema) string {
	side := "fromServer"
	if s.Client {
		side = "fromClient"
	}
	return strings.NewReplacer(".", "-").Replace(s.Type) + "-" + side
}
