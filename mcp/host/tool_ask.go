package host

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/quote"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/mcp/inbox"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var askTool = &mcp.Tool{
	Name:  "agora_ask",
	Title: "Ask an agent",
	Description: "Ask an agent a question, or give it a task, and wait for its answer, up to 50 seconds. " +
		"Where it takes longer the result has answered=false and an id: call agora_ask with that id alone to go on waiting, as often as you like; do not ask the question again. " +
		"The answer also reaches your mailbox if you never come back for it.",
}

type askIn struct {
	To      string   `json:"to,omitempty" jsonschema:"id of the agent, as agora_who lists it"`
	Text    spoken   `json:"text,omitempty" jsonschema:"the question or task"`
	Payload members  `json:"payload,omitempty" jsonschema:"instead of text, or beside it: a JSON object"`
	ID      string   `json:"id,omitempty" jsonschema:"instead of all that: id of a question asked before, to wait for its answer"`
	WaitS   *float64 `json:"wait_s,omitempty" jsonschema:"seconds to wait for the answer, 0 to 50; 50 if left out"`
}

type askOut struct {
	ID       string `json:"id" jsonschema:"id of the question: give it to agora_ask to go on waiting"`
	To       string `json:"to"`
	Answered bool   `json:"answered"`
	Tier     string `json:"tier,omitempty" jsonschema:"how far the question has come: stored, delivered or acked"`
	Text     string `json:"text,omitempty" jsonschema:"the answer; while answered is false, what there is of it"`
	Payload  any    `json:"payload,omitempty" jsonschema:"the answer's payload, where it is more than text"`
	Broken   string `json:"broken,omitempty" jsonschema:"why the answer has no proper end"`
	Seq      uint64 `json:"seq,omitempty" jsonschema:"position of the answer in your mailbox"`
	Offset   int    `json:"offset,omitempty" jsonschema:"the answer is longer: read on with agora_inbox, seq and this offset"`
	Note     string `json:"note,omitempty"`
}

func (o askOut) text() string {
	switch {
	case !o.Answered && o.Text != "":
		return fmt.Sprintf("%s is still answering. So far:\n%s\nGo on waiting: agora_ask with id %s.", quote.Name(o.To), o.Text, o.ID)
	case !o.Answered:
		return strings.TrimSpace(fmt.Sprintf("%s has not answered yet; the question is %s. Go on waiting: agora_ask with id %s. %s", quote.Name(o.To), o.Tier, o.ID, o.Note))
	}
	text := quote.Name(o.To) + " answers:\n" + o.Text
	if o.Broken != "" {
		text += "\n(It broke off: " + o.Broken + ")"
	}
	if o.Offset > 0 {
		text += fmt.Sprintf("\n(It is longer: agora_inbox with seq %d and offset %d.)", o.Seq, o.Offset)
	}
	return text
}

func (h *Host) ask(ctx context.Context, req *mcp.CallToolRequest, in askIn) (out askOut, err error) {
	begun := time.Now()
	m, err := h.question(ctx, in)
	if err != nil {
		return out, err
	}
	out = askOut{ID: m.request, To: m.to}
	waiting, cancel := context.WithDeadline(ctx, begun.Add(seconds(in.WaitS, maxWait)))
	defer cancel()
	it, err := h.inbox.Await(waiting, m.to, m.request, h.progressOf(waiting, req))
	out.Answered = err == nil
	out.Tier = m.tier()
	switch {
	case err != nil && h.inbox.Full():
		out.Note = "Your mailbox is full, so the answer can't come in: acknowledge messages with agora_inbox first."
	case err != nil && it.Seq == 0 && ctx.Err() == nil && h.isAway(ctx, m.to):
		out.Note = "It is not connected: the question waits in its mailbox."
	}
	if it.Seq > 0 {
		out.answer(it)
	}
	return out, nil
}

// lookTime bounds the look into the directory behind a wait, which a host waits for as well.
const lookTime = 2 * time.Second

// isAway reports whether the directory has no agent of that id now.
func (h *Host) isAway(ctx context.Context, id string) bool {
	ctx, cancel := context.WithTimeout(ctx, lookTime)
	defer cancel()
	c, err := h.link.client(ctx)
	if err != nil {
		return false
	}
	_, err = c.AgentCard(ctx, id)
	return err != nil && agora.AsError(err).Code == agora.AgentNotFound
}

// requestID is the member of a payload that makes it a question, and names that.
const requestID = "request_id"

// question sends a question, or finds one that was asked before. Its error is for a model.
func (h *Host) question(ctx context.Context, in askIn) (*sending, error) {
	if in.ID != "" {
		if len(in.Text)+len(in.Payload) > 0 {
			return nil, errors.New("give either the id of a question asked before, or a new question")
		}
		if m := h.sent.find(in.ID); m != nil && m.request != "" {
			return m, nil
		}
		return nil, fmt.Errorf("no question %q is known here: perhaps this server was started anew since. Its answer comes to your mailbox (agora_inbox)", in.ID)
	}
	payload, err := body(in.Text, anything(in.Payload))
	if err != nil {
		return nil, err
	}
	if name := rawjson.Member(payload, requestID); len(name) > 2 && name[0] == '"' {
		return h.dispatch(ctx, in.To, rawjson.Unquote(name), payload)
	}
	name := "ask-" + strings.ToLower(rand.Text()[:12])
	if rawjson.Member(payload, requestID) != nil { // one that names no request
		payload = rawjson.Without(payload, requestID)
	}
	return h.dispatch(ctx, in.To, name, rawjson.With(payload, requestID, rawjson.AppendString(nil, name)))
}

// answer takes what there is of an answer.
func (o *askOut) answer(it inbox.Item) {
	o.Seq, o.Broken = it.Seq, it.Broken
	text := textOf(it)
	if structured(it.Payload) && len(it.Payload) <= contentRoom/2 {
		o.Payload = it.Payload
	}
	o.Text, o.Offset = cut(text, 0, contentRoom)
	if !o.Answered {
		o.Offset = 0
	}
}

// progressOf returns what tells the model's host how an answer grows; nil where it did not ask for that.
func (h *Host) progressOf(ctx context.Context, req *mcp.CallToolRequest) func(inbox.Item) {
	token := req.Params.GetProgressToken()
	if token == nil {
		return nil
	}
	told := 0
	return func(it inbox.Item) {
		piece, _ := cut(it.Text, told, maxPreview)
		told = len(it.Text)
		// A host that is gone shows in its next request.
		_ = req.Session.NotifyProgress(ctx, &mcp.ProgressNotificationParams{ProgressToken: token, Message: piece, Progress: float64(told)})
	}
}
