package wire

import (
	_ "embed" // examples
	"encoding/json"
	"strings"
)

// AsyncAPI returns what clients and edges say to each other at /ws, as a document of AsyncAPI 3 from the edge's point of view: it receives what clients send. It is made of
// [Schemas], with the limits of the edge that shows it. Who may connect where, the reader fills in: an edge does not know the names that it is reached by.
func AsyncAPI(l Limits) map[string]any {
	messages, components := object{}, object{}
	sides := map[bool][]any{}
	examples := exampleFrames()
	for _, s := range Schemas(l) {
		name := messageName(s)
		components[name] = object{
			"name": s.Type, "title": s.Type, "summary": s.Summary, "contentType": "application/json", "payload": s.Schema,
			"examples": []any{object{"payload": examples[name]}},
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
		"servers":            object{"plain": server("ws", "127.0.0.1:8080"), "tls": server("wss", "agora.example.com")},
		"channels": object{"ws": object{
			"address": "/ws", "title": "A connection of an agent", "messages": messages,
			"bindings": object{"ws": object{"bindingVersion": "0.1.0", "method": "GET", "query": object{"type": "object", "properties": object{
				"agent_id": object{"type": "string"}, "token": object{"type": "string"}, "last_seq": object{"type": "integer"},
				"resume_token": object{"type": "string"}, "receipts": object{"type": "string"}, "max_frame": object{"type": "integer"},
			}}}},
		}},
		"operations": object{
			"fromClient": object{"action": "receive", "channel": channel, "title": "What clients send", "messages": sides[true]},
			"fromServer": object{"action": "send", "channel": channel, "title": "What the edge sends", "messages": sides[false]},
		},
		"components": object{"messages": components, "securitySchemes": object{
			"bearer":      object{"type": "http", "scheme": "bearer", "description": "Before token, where both are there."},
			"token":       object{"type": "httpApiKey", "in": "query", "name": "token"},
			"certificate": object{"type": "X509", "description": "Where the operator takes those of clients."},
		}},
	}
}

// server is an edge that is reached by a protocol, with any one of the credentials: none are needed where the operator has switched authentication off.
func server(protocol, host string) object {
	var credentials []object
	for _, name := range []string{"bearer", "token", "certificate"} {
		credentials = append(credentials, object{"$ref": "#/components/securitySchemes/" + name})
	}
	return object{
		"host": "{host}", "protocol": protocol, "security": credentials,
		"variables": object{"host": object{"default": host, "description": "Any edge of the cluster, or what stands before them."}},
	}
}

// exampleLines has a frame of every type in either direction, one a line, as [messageName] calls them.
//
//go:embed examples.txt
var exampleLines string

// exampleFrames returns the frames of exampleLines, by the names of their messages.
func exampleFrames() map[string]json.RawMessage {
	all := map[string]json.RawMessage{}
	for line := range strings.Lines(exampleLines) {
		if name, frame, ok := strings.Cut(strings.TrimSpace(line), " "); ok {
			all[name] = json.RawMessage(frame)
		}
	}
	return all
}

// messageName returns the name of a frame among the messages of the document: its type in one direction.
func messageName(s FrameSchema) string {
	side := "fromServer"
	if s.Client {
		side = "fromClient"
	}
	return strings.NewReplacer(".", "-").Replace(s.Type) + "-" + side
}
