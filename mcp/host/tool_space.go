package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var joinTool = &mcp.Tool{
	Name:  "agora_join",
	Title: "Join a space",
	Description: "Become a member of a space, a channel that several agents share: what is published there is for all members. A space that does not exist is made. " +
		"Returns its members and latest events. With leave=true the membership ends instead.",
}

var publishTool = &mcp.Tool{
	Name:        "agora_publish",
	Title:       "Publish into a space",
	Description: "Publish something to all members of a space that you have joined. Returns once the cluster keeps it.",
}

var readSpaceTool = &mcp.Tool{
	Name:  "agora_read_space",
	Title: "Read a space",
	Description: "Read what has happened in a space that you have joined, since you read it last: what was published, who joined and who left. " +
		"With after = 0 it begins with the oldest event that is held. With wait_s it waits for events when there are none.",
	Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
}

type joinIn struct {
	Space   string `json:"space" jsonschema:"name of the space"`
	Leave   bool   `json:"leave,omitempty" jsonschema:"true to leave the space"`
	History *int   `json:"history,omitempty" jsonschema:"how many events of before to get, 0 to 100; 20 if left out"`
}

type spaceIn struct {
	Space  string   `json:"space" jsonschema:"name of a space that you have joined"`
	After  *uint64  `json:"after,omitempty" jsonschema:"list events behind this seq; if left out, those that you have not read yet"`
	WaitS  *float64 `json:"wait_s,omitempty" jsonschema:"seconds to wait for an event where there is none, 0 to 50; 0 if left out"`
	Seq    uint64   `json:"seq,omitempty" jsonschema:"read one event again, or on from offset"`
	Offset int      `json:"offset,omitempty" jsonschema:"where to read on in the event seq"`
}

type publishIn struct {
	Space string  `json:"space" jsonschema:"name of a space that you have joined"`
	Text  spoken  `json:"text,omitempty" jsonschema:"what to say"`
	Data  members `json:"data,omitempty" jsonschema:"instead of text, or beside it: a JSON object"`
}

type publishOut struct {
	Space string `json:"space"`
	Tier  string `json:"tier" jsonschema:"stored: every member will get it once"`
}

func (o publishOut) text() string { return "Published into " + o.Space + ": " + o.Tier + "." }

type spaceEvents struct {
	Space   string     `json:"space"`
	Member  bool       `json:"member"`
	Members []string   `json:"members,omitempty"`
	Events  []eventOut `json:"events"`
	Next    uint64     `json:"next,omitempty" jsonschema:"there are more events: call agora_read_space again with after set to this"`
	Missed  bool       `json:"missed,omitempty" jsonschema:"events before these are held no more"`
	Trouble string     `json:"trouble,omitempty" jsonschema:"why there is no connection now"`
}

type eventOut struct {
	Seq     uint64 `json:"seq"`
	Kind    string `json:"kind" jsonschema:"event, joined or left"`
	From    string `json:"from"`
	Text    string `json:"text,omitempty"`
	Data    any    `json:"data,omitempty" jsonschema:"what was published, where it is more than text"`
	Writing bool   `json:"writing,omitempty" jsonschema:"its text is still being written"`
	Broken  string `json:"broken,omitempty" jsonschema:"why its text has no proper end"`
	Offset  int    `json:"offset,omitempty" jsonschema:"it is longer: read on with seq and this offset"`
	AgeS    int    `json:"age_s"`
}

const (
	maxHistory      = 100
	maxShownMembers = 50
)

func (h *Host) join(ctx context.Context, _ *mcp.CallToolRequest, in joinIn) (out spaceEvents, err error) {
	out = spaceEvents{Space: in.Space, Events: []eventOut{}}
	if in.Space == "" {
		return out, errors.New("name the space")
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if in.Leave {
		if err := h.feeds.leave(ctx, in.Space); err != nil {
			return out, h.stuck("%w", err)
		}
		return out, nil
	}
	if _, err := h.link.client(ctx); err != nil {
		return out, err
	}
	history := startHistory
	if in.History != nil {
		history = min(max(*in.History, 0), maxHistory)
	}
	f, fresh, err := h.feeds.join(ctx, in.Space, history)
	if err != nil {
		return out, h.stuck("%w", err)
	}
	if fresh && history > 0 {
		settled, done := context.WithTimeout(ctx, settleTime)
		_ = f.until(settled, func() bool { return len(f.events) >= history }) // what has come by then is told
		done()
	}
	return f.list(out, nil), nil
}

func (h *Host) publish(ctx context.Context, _ *mcp.CallToolRequest, in publishIn) (out publishOut, err error) {
	data, err := body(in.Text, anything(in.Data))
	switch {
	case errors.Is(err, errNothingSaid) || err == nil && string(rawjson.Without(data)) == "{}":
		return out, errors.New("give the text to publish, or data")
	case err != nil:
		return out, errors.New("data has a text already: leave out one of the two")
	}
	c, err := h.link.client(ctx)
	if err != nil {
		return out, err
	}
	f, err := h.feeds.get(in.Space)
	if err != nil {
		return out, err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	space, _ := f.member()
	if space == nil {
		return out, h.stuck("the membership of space %.100q is being made again: try again in some seconds", in.Space)
	}
	err = space.Publish(ctx, data)
	switch {
	case err != nil && c.Err() != nil:
		return out, advised(fmt.Sprintf("space %.100q", in.Space), client.ErrUnknown)
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled):
		return out, h.stuck("the cluster has not confirmed within %v that this is stored in space %.100q: it may still be. Read the space before you publish it again", sendTime, in.Space)
	case err != nil:
		return out, h.failed(fmt.Sprintf("space %.100q", in.Space), err)
	}
	return publishOut{in.Space, "stored"}, nil
}

func (h *Host) readSpace(ctx context.Context, _ *mcp.CallToolRequest, in spaceIn) (out spaceEvents, err error) {
	out = spaceEvents{Space: in.Space, Events: []eventOut{}}
	f, err := h.feeds.get(in.Space)
	if err != nil {
		return out, err
	}
	if in.Seq > 0 {
		e, ok := f.one(in.Seq, in.Offset)
		if !ok {
			return out, fmt.Errorf("no event with seq %d of space %.100q is held here", in.Seq, in.Space)
		}
		out.Events = append(out.Events, e)
		out.Member = true
		return out, nil
	}
	ctx, cancel := context.WithTimeout(ctx, max(seconds(in.WaitS, 0), settleTime))
	defer cancel()
	_ = f.until(ctx, func() bool { return f.news(in.After) }) // what there is then is listed
	if trouble := h.link.trouble(); trouble != nil {
		out.Trouble = trouble.Error()
	}
	return f.list(out, in.After), nil
}

// from returns the position behind which events are listed. The lock is held.
func (f *feed) from(after *uint64) uint64 {
	if after != nil {
		return *after
	}
	return f.read
}

// news reports whether there are events to list. The lock is held.
func (f *feed) news(after *uint64) bool {
	n := len(f.events)
	return n > 0 && f.events[n-1].seq > f.from(after)
}

// list adds events behind a position, as many as there is room for, and notes that they were read.
func (f *feed) list(out spaceEvents, after *uint64) spaceEvents {
	f.mu.Lock()
	defer f.mu.Unlock()
	from := f.from(after)
	out.Member = true
	out.Missed = f.dropped > from
	if f.space != nil {
		out.Members = f.space.Members()
		out.Members = out.Members[:min(len(out.Members), maxShownMembers)]
	}
	room := contentRoom - costOf(strings.Join(out.Members, "   "))
	for _, h := range f.events {
		if h.seq <= from {
			continue
		}
		if room < contentRoom/4 && len(out.Events) > 0 {
			out.Next = out.Events[len(out.Events)-1].Seq
			break
		}
		e := h.out(0, max(room-eventCost, contentRoom/4))
		room -= costOf(e.Text) + size(e.Data) + eventCost
		out.Events = append(out.Events, e)
		if h.done {
			f.read = max(f.read, h.seq)
		}
	}
	return out
}

// eventCost is what an event has in a result besides its text.
const eventCost = 150

// one returns an event, its text from an offset on.
func (f *feed) one(seq uint64, offset int) (eventOut, bool) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, h := range f.events {
		if h.seq == seq {
			return h.out(offset, contentRoom), true
		}
	}
	return eventOut{}, false
}

// out is an event as a model sees it, its text from an offset on. The lock is held.
func (h *happening) out(offset, room int) eventOut {
	e := eventOut{Seq: h.seq, Kind: h.kind, From: h.from, Writing: !h.done, Broken: h.broken, AgeS: int(time.Since(h.at).Seconds())}
	data, plain := published(h.data)
	if !plain && len(data) <= room && offset == 0 {
		e.Data = data
		e.Text, e.Offset = cut(string(h.text), offset, max(room-len(data), room/4))
		return e
	}
	text := payloadText(data)
	if text != "" && len(h.text) > 0 && !plain {
		text += "\n"
	}
	e.Text, e.Offset = cut(text+string(h.text), offset, room)
	return e
}

// published returns what an event says, without what the cluster has set, and whether that is text alone.
func published(data json.RawMessage) (rest json.RawMessage, plain bool) {
	if trimmed := bytes.TrimSpace(data); len(trimmed) == 0 || trimmed[0] != '{' {
		return data, len(data) == 0
	}
	if rest = rawjson.Without(data, "from", "timestamp"); string(rest) == "{}" {
		return nil, true
	}
	_, plain = plainText(rest)
	return rest, plain && rawjson.Member(rest, requestID) == nil && !rawjson.Halved(rest)
}

func (o spaceEvents) text() string {
	if !o.Member {
		return "You have left space " + o.Space + "."
	}
	var b strings.Builder
	fmt.Fprintf(&b, "Space %s", quote.Name(o.Space))
	if len(o.Members) > 0 {
		fmt.Fprintf(&b, ", members: %s", listed(o.Members))
	}
	b.WriteString(".\n")
	if o.Missed {
		b.WriteString("Older events are held no more.\n")
	}
	if len(o.Events) == 0 {
		b.WriteString("Nothing new.")
	}
	for _, e := range o.Events {
		b.WriteString(e.line())
	}
	if o.Next > 0 {
		fmt.Fprintf(&b, "There are more: after=%d.", o.Next)
	}
	if o.Trouble != "" {
		b.WriteString("\nNot connected: " + o.Trouble)
	}
	return b.String()
}

// line is the event as text.
func (e eventOut) line() string {
	if e.Kind != "event" {
		return fmt.Sprintf("[seq %d] %s %s\n", e.Seq, quote.Name(e.From), e.Kind)
	}
	text := e.Text
	if raw, ok := e.Data.(json.RawMessage); ok {
		text = strings.TrimSpace(string(raw) + " " + text)
	}
	switch {
	case e.Writing:
		text += "… (still being written)"
	case e.Broken != "":
		text += " (broken off: " + e.Broken + ")"
	case e.Offset > 0:
		text += fmt.Sprintf("… (longer: seq=%d offset=%d)", e.Seq, e.Offset)
	}
	return fmt.Sprintf("[seq %d] %s: %s\n", e.Seq, quote.Name(e.From), within(text))
}
