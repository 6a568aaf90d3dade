package host

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/mcp/inbox"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var inboxTool = &mcp.Tool{
	Name:  "agora_inbox",
	Title: "Read the mailbox",
	Description: "Read the messages that other agents have sent you, the oldest first. A message stays in the mailbox and is listed again until you acknowledge it: " +
		"give ack = the seq of the last message that you have taken, and all up to it are done with (those alone that were listed). Messages of kind request wait for an answer: agora_reply. " +
		"With wait_s it waits for messages when there are none. A message that is cut off has an offset: read on with seq and offset.",
}

type inboxIn struct {
	Ack    uint64   `json:"ack,omitempty" jsonschema:"acknowledge all listed messages up to this seq first"`
	After  uint64   `json:"after,omitempty" jsonschema:"list messages behind this seq alone"`
	WaitS  *float64 `json:"wait_s,omitempty" jsonschema:"seconds to wait for a message where there is none, 0 to 50; 0 if left out"`
	Seq    uint64   `json:"seq,omitempty" jsonschema:"read one message again, or on from offset"`
	Offset int      `json:"offset,omitempty" jsonschema:"where to read on in the message seq"`
}

type inboxOut struct {
	Messages     []messageOut `json:"messages"`
	More         int          `json:"more,omitempty" jsonschema:"messages that are not in this result: call again with after set to the seq of the last one"`
	Acknowledged int          `json:"acknowledged,omitempty" jsonschema:"messages that are acknowledged now"`
	Left         int          `json:"left,omitempty" jsonschema:"messages up to ack that are not acknowledged, because they were not listed yet or are still being written"`
	Lost         []string     `json:"lost,omitempty" jsonschema:"what the mailbox could not keep"`
	Trouble      string       `json:"trouble,omitempty" jsonschema:"why there is no connection now"`
}

type messageOut struct {
	Seq       uint64 `json:"seq" jsonschema:"position in the mailbox: for ack and agora_reply"`
	From      string `json:"from"`
	Kind      string `json:"kind" jsonschema:"message, request (it waits for an answer) or reply"`
	RequestID string `json:"request_id,omitempty" jsonschema:"the request that it makes or answers"`
	Text      string `json:"text"`
	Payload   any    `json:"payload,omitempty" jsonschema:"its payload, where it is more than text"`
	Media     string `json:"media,omitempty" jsonschema:"media type of what the payload is base64 of"`
	Writing   bool   `json:"writing,omitempty" jsonschema:"its text is still being written: read it again later"`
	Broken    string `json:"broken,omitempty" jsonschema:"why its text has no proper end"`
	GivenUp   bool   `json:"given_up,omitempty" jsonschema:"its sender waits for an answer no more"`
	Again     bool   `json:"again,omitempty" jsonschema:"it may have been given to you before this server was started"`
	AgeS      int    `json:"age_s" jsonschema:"seconds since it came here"`
	LeftS     int    `json:"left_s,omitempty" jsonschema:"seconds that its sender still waits"`
	Offset    int    `json:"offset,omitempty" jsonschema:"it is longer: read on with seq and this offset"`
	Length    int    `json:"length,omitempty" jsonschema:"of the whole text, where it is longer"`
}

// maxListed bounds the messages of one result; their texts are bounded by maxResult.
const maxListed = 20

func (h *Host) readInbox(ctx context.Context, _ *mcp.CallToolRequest, in inboxIn) (out inboxOut, err error) {
	out.Messages = []messageOut{}
	if in.Ack > 0 {
		out.Acknowledged, out.Left = h.inbox.Ack(in.Ack)
	}
	if in.Seq > 0 {
		it, _, ok := h.inbox.Message(in.Seq)
		if !ok {
			return out, fmt.Errorf("no message with seq %d is here: agora_inbox without seq lists those that are", in.Seq)
		}
		out.Messages = append(out.Messages, message(it, in.Offset, contentRoom))
		return out, nil
	}
	if err := h.arrived(ctx, in); err != nil {
		return out, err
	}
	h.fill(&out, in.After)
	for _, g := range h.inbox.Lost() {
		out.Lost = append(out.Lost, lossOf(g))
	}
	if trouble := h.link.trouble(); trouble != nil {
		out.Trouble = trouble.Error()
	}
	return out, nil
}

// arrived waits for messages, and for the connection where it is not there yet: without it nobody can say that the
// mailbox is empty.
func (h *Host) arrived(ctx context.Context, in inboxIn) error {
	wait := seconds(in.WaitS, 0)
	if _, err := h.link.client(ctx); err != nil && wait == 0 && len(h.inbox.Peek()) == 0 {
		return err
	}
	if wait == 0 {
		wait = settleTime
	}
	ctx, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_ = h.inbox.Wait(ctx, in.After) // what there is then is listed
	return nil
}

// settleTime is how long a read that is not to wait waits nevertheless: what is on its way from the cluster comes in
// that time.
const settleTime = 200 * time.Millisecond

// fill lists messages, as many as there is room for.
func (h *Host) fill(out *inboxOut, after uint64) {
	for room := contentRoom; ; {
		items, more := h.inbox.List(after, 1)
		if len(items) == 0 {
			return
		}
		after = items[0].Seq
		m := message(items[0], 0, max(room-messageCost, contentRoom/4))
		out.Messages = append(out.Messages, m)
		if room -= costOf(m.Text) + size(m.Payload) + messageCost; room < contentRoom/4 || len(out.Messages) == maxListed {
			out.More = more
			return
		}
	}
}

// messageCost is what a message has in a result besides its text.
const messageCost = 250

func size(payload any) int {
	raw, _ := payload.(json.RawMessage)
	return len(raw)
}

// message is a message as a model sees it, its text from an offset on.
func message(it inbox.Item, offset, room int) messageOut {
	text := textOf(it)
	m := messageOut{
		Seq: it.Seq, From: it.From, Kind: kindOf(it), RequestID: it.RequestID, Media: it.Media, Writing: it.Streaming,
		Broken: it.Broken, GivenUp: it.GivenUp, Again: it.Redelivered, AgeS: since(it.Received),
	}
	if m.Text, m.Offset = cut(text, offset, room); m.Offset > 0 || offset > 0 {
		m.Length = len(text)
	}
	if !it.Deadline.IsZero() {
		m.LeftS = max(0, int(time.Until(it.Deadline).Seconds()))
		m.GivenUp = m.GivenUp || m.LeftS == 0
	}
	if offset == 0 && structured(it.Payload) && len(it.Payload) <= room {
		m.Payload = it.Payload
		if it.Text == "" && it.End == nil {
			m.Text, m.Offset, m.Length = textMember(it.Payload), 0, 0
		}
	}
	return m
}

// structured reports whether a payload says more than its text does.
func structured(payload json.RawMessage) bool {
	trimmed := bytes.TrimSpace(payload)
	if len(trimmed) == 0 || rawjson.Halved(payload) { // text has no half surrogate pairs
		return len(trimmed) > 0
	}
	return trimmed[0] != '"' && payloadText(payload) == string(payload)
}

// textMember returns the text of a payload that has more than that.
func textMember(payload json.RawMessage) string {
	text := rawjson.Member(payload, "text")
	if len(text) == 0 || text[0] != '"' {
		return ""
	}
	return rawjson.Unquote(text)
}

// lossOf says what a gap means.
func lossOf(g client.Gap) string {
	switch {
	case g.StreamID != "":
		return fmt.Sprintf("the beginning of a stream from %s is lost", quote.Name(g.From))
	case g.Space != "":
		return fmt.Sprintf("events of space %s may be lost: seq %d to %d", quote.Name(g.Space), g.FromSeq, g.ToSeq)
	}
	return fmt.Sprintf("messages may be lost: seq %d to %d. Ask those who write to you", g.FromSeq, g.ToSeq)
}

func (o inboxOut) text() string {
	var b strings.Builder
	if o.Acknowledged > 0 || o.Left > 0 {
		fmt.Fprintf(&b, "%d acknowledged, %d not.\n", o.Acknowledged, o.Left)
	}
	for _, loss := range o.Lost {
		b.WriteString("Lost: " + loss + "\n")
	}
	if len(o.Messages) == 0 {
		b.WriteString("No messages.")
	}
	for _, m := range o.Messages {
		b.WriteString(m.String())
	}
	if o.More > 0 {
		fmt.Fprintf(&b, "%d more: after=%d.\n", o.More, o.Messages[len(o.Messages)-1].Seq)
	}
	if n := len(o.Messages); n > 0 {
		fmt.Fprintf(&b, "Taken? Acknowledge with ack=%d.", o.Messages[n-1].Seq)
	}
	if o.Trouble != "" {
		b.WriteString("\nNot connected: " + o.Trouble)
	}
	return b.String()
}

// heads are the beginnings of the lines that results have of their own.
var heads = []string{"[seq", "lost:", "taken?", "not connected", "no messages", "space", "older events"}

// within returns a text as it stands behind a line that tells whose it is: what could be taken for another line of the
// result's own is indented.
func within(text string) string {
	lines := strings.Split(strings.NewReplacer("\r\n", "\n", "\r", "\n", "\u2028", "\n", "\u2029", "\n").Replace(text), "\n")
	for i, line := range lines {
		begins := strings.ToLower(strings.TrimLeftFunc(line, func(r rune) bool { return r == ' ' || quote.Unseen(r) }))
		if i > 0 && slices.ContainsFunc(heads, func(word string) bool { return strings.HasPrefix(begins, word) }) {
			lines[i] = "    " + line
		}
	}
	return strings.Join(lines, "\n")
}

// String is the message as text.
func (m messageOut) String() string {
	head := fmt.Sprintf("[seq %d] %s from %s", m.Seq, m.Kind, quote.Name(m.From))
	for _, s := range []struct {
		what string
		is   bool
	}{{"still being written", m.Writing}, {"given up by its sender", m.GivenUp}, {"perhaps read before", m.Again}} {
		if s.is {
			head += ", " + s.what
		}
	}
	text := m.Text
	if raw, ok := m.Payload.(json.RawMessage); ok {
		text = string(raw)
	}
	if m.Broken != "" {
		text += "\n(broken off: " + m.Broken + ")"
	}
	if m.Offset > 0 {
		text += fmt.Sprintf("… (%d of %d bytes; on with seq=%d offset=%d)", m.Offset, m.Length, m.Seq, m.Offset)
	}
	return head + ": " + within(text) + "\n"
}
