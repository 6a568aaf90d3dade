package wire

import (
	"fmt"
	"strings"
)

// direction says who sends a frame.
type direction uint8

const (
	fromClient direction = 1 << iota
	fromServer
	fromBoth = fromClient | fromServer
)

// row is one frame of the protocol. Fields stand in the order in which they
// are written, the seed's before the extensions. A field that ends in ! must be
// there, and one that ends in + is written even when it is empty; one that
// begins with > is sent by clients only, with < by servers only.
type row struct {
	name   string
	from   direction
	fields string
}

// rows is every frame there is. PROTOCOL.md describes the same ones, and a test holds them together.
var rows = []row{
	// Agora relay §1: from the sender of a message.
	{"send", fromClient, "to! stream_id stream payload id n index receipts deadline_ms traceparent request_id"},
	{"send_chunk", fromClient, "to! stream_id! chunk! id n index receipts"},
	{"send_end", fromClient, "to! stream_id! payload id n index receipts"},

	// Agora relay §2: to its receiver.
	{"message", fromServer, "from! stream_id stream payload media seq n session index redelivered deadline_ms traceparent request_id"},
	{"message_chunk", fromServer, "from! stream_id! chunk! media item seq n session index redelivered"},
	{"message_end", fromServer, "from! stream_id! payload media seq n session index redelivered"},

	// Agora relay §3: replies, the same in both directions but for to and from.
	{"reply", fromBoth, ">to! <from! stream_id stream payload <media >id <seq n <session index >receipts <redelivered deadline_ms traceparent request_id"},
	{"reply_chunk", fromBoth, ">to! <from! stream_id! chunk! <media <item >id <seq n <session index >receipts <redelivered"},
	{"reply_end", fromBoth, ">to! <from! stream_id! payload <media >id <seq n <session index >receipts <redelivered"},

	// Short registration, which the relay's prerequisite needs, and the directory.
	{"register", fromClient, "id! name endpoint resume_token last_seq receipts max_frame spaces"},
	{"registered", fromServer, "id! resume_token last_seq heartbeat_interval resumed next_n space_next_n expires"},
	{"list", fromClient, "id after"},
	{"agents", fromServer, "id agents! next"},
	{"agents.find", fromClient, "id skill goal to limit"},
	{"agents.found", fromServer, "id agents! left_out"},

	// Calls of tools, whatever the dialect of the agent that has them.
	{"call_tool", fromClient, "id! to! tool_name! arguments parent_id deadline_ms traceparent"},
	{"tool.chunk", fromServer, "id! from! index! body! media item"},
	{"tool.result", fromServer, "id! from! body media error"},

	// Cards and handoffs, whatever the dialect of the agent that is asked.
	{"card.get", fromClient, "id! to!"},
	{"card", fromServer, "id! from! card!"},
	{"handoff", fromClient, "id! to! method! path! params input_data deadline_ms traceparent"},
	{"handoff.chunk", fromServer, "id! from! index! body! media item"},
	{"handoff.result", fromServer, "id! from! code! body media error"},

	// Extensions of both seeds.
	{"cancel", fromBoth, ">to! <from! stream_id >request_id >id <seq n <session >receipts <redelivered"},
	{"ack", fromClient, "id space seq!"},
	{"receipt", fromServer, "request_id to space stream_id event_id n index status! seq redelivered"},
	{"gap", fromServer, "from_seq! to_seq! space"},
	{"agent.reconnect", fromServer, "after_ms!"},
	{"agent.refresh", fromClient, "id timestamp token!"},
	{"agent.refreshed", fromServer, "id expires"},

	// Agora spaces, agent events and the error format.
	{"agent.register", fromClient, "id timestamp agent! resume_token last_seq receipts max_frame spaces"},
	{"agent.registered", fromServer, "id agent! resume_token last_seq heartbeat_interval resumed next_n space_next_n expires"},
	{"agent.heartbeat", fromBoth, "id timestamp"},
	{"error", fromServer, "code! message! request_id to from stream_id space event_id retry_after_ms seq n session index redelivered"},

	// Agora spaces, space events.
	{"space.join", fromClient, "id timestamp space! last_seq history"},
	{"space.joined", fromServer, "id space! members! seq+ left_out"},
	{"space.leave", fromClient, "id timestamp space!"},
	{"space.left", fromServer, "id space!"},
	{"space.create", fromClient, "id timestamp space!"},
	{"space.created", fromServer, "id space!"},
	{"space.members", fromServer, "space! members+ joined! left! seq redelivered"},
	{"space.publish", fromClient, "id timestamp space! data! stream n receipts traceparent"},
	{"space.publish.delta", fromClient, "id timestamp space! event_id! data! n"},
	{"space.publish.done", fromClient, "id timestamp space! event_id! n"},
	{"space.published", fromServer, "id space! event_id!"},
	{"space.event", fromServer, "space! data! seq n session redelivered traceparent"},
	{"space.event.delta", fromServer, "space! event_id! data! seq n session index redelivered traceparent"},
	{"space.event.done", fromServer, "space! event_id! seq n session index redelivered"},
	{"space.event.cancel", fromBoth, ">id >timestamp space event_id! <seq <n <session >receipts <redelivered"},
	{"space.list", fromBoth, "id >timestamp <spaces! >after <next"},
}

// use is a field of a frame.
type use struct {
	field    field
	required bool // it must be there when decoding
	always   bool // it is written even when it is empty
}

// shape is a row made ready.
type shape struct {
	name   string
	fields []use
	hasID  bool
}

func (s *shape) add(u use) {
	s.fields = append(s.fields, u)
	s.hasID = s.hasID || u.field == fID
}

// protocol is the table made ready: by type, what is read from either side and what is written.
type protocol struct {
	requests, answers, written map[string]*shape
}

var table = compile(rows)

func compile(rows []row) protocol {
	p := protocol{map[string]*shape{}, map[string]*shape{}, map[string]*shape{}}
	for _, r := range rows {
		p.add(r)
	}
	return p
}

// add enters a row. It panics on a row that is misspelt, as the program starts.
func (p protocol) add(r row) {
	request, answer, written := &shape{name: r.name}, &shape{name: r.name}, &shape{name: r.name}
	for word := range strings.FieldsSeq(r.fields) {
		u, from := parseUse(r, word)
		if from&fromClient != 0 {
			request.add(u)
		}
		if from&fromServer != 0 {
			answer.add(u)
		}
		u.always = u.always || u.required && from == r.from
		written.add(u)
	}
	if r.from&fromClient != 0 {
		p.requests[r.name] = request
	}
	if r.from&fromServer != 0 {
		p.answers[r.name] = answer
	}
	p.written[r.name] = written
}

func parseUse(r row, word string) (u use, from direction) {
	from = r.from
	key, required := strings.CutSuffix(word, "!")
	key, always := strings.CutSuffix(key, "+")
	switch {
	case strings.HasPrefix(key, ">"):
		key, from = key[1:], fromClient
	case strings.HasPrefix(key, "<"):
		key, from = key[1:], fromServer
	}
	f, ok := fieldOf([]byte(key))
	if !ok {
		panic(fmt.Sprintf("wire: row %s has the unknown field %s", r.name, key))
	}
	return use{field: f, required: required, always: always}, from
}
