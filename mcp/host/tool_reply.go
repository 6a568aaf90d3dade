package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/agora-relay/agora/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var replyTool = &mcp.Tool{
	Name:  "agora_reply",
	Title: "Answer a message",
	Description: "Answer a message of your mailbox, by its seq. A request gets your answer as its reply, any other message as a message to its sender. " +
		"Answering acknowledges the message. Returns once the cluster keeps the answer.",
}

type replyIn struct {
	Seq     uint64   `json:"seq" jsonschema:"seq of the message, as agora_inbox lists it"`
	Text    spoken   `json:"text,omitempty" jsonschema:"the answer"`
	Payload anything `json:"payload,omitempty" jsonschema:"instead of text, or an object beside it: any JSON"`
}

type replyOut struct {
	To        string `json:"to"`
	RequestID string `json:"request_id,omitempty" jsonschema:"the request that is answered"`
	Tier      string `json:"tier" jsonschema:"stored: the answer will arrive once"`
	GivenUp   bool   `json:"given_up,omitempty" jsonschema:"its sender had given the request up: the answer may be passed over"`
}

func (o replyOut) text() string {
	text := "Your answer to " + o.To + " is " + o.Tier + "."
	if o.GivenUp {
		text += " Its sender waited for it no more."
	}
	return text
}

func (h *Host) reply(ctx context.Context, _ *mcp.CallToolRequest, in replyIn) (out replyOut, err error) {
	payload, err := body(in.Text, in.Payload)
	if err != nil {
		return out, err
	}
	it, m, ok := h.inbox.Message(in.Seq)
	if !ok {
		return out, fmt.Errorf("no message with seq %d is here to be answered: agora_inbox lists those that are; agora_send writes to any agent", in.Seq)
	}
	if kindOf(it) != "request" {
		sent, err := h.dispatch(ctx, it.From, "", payload)
		if err != nil {
			return out, err
		}
		h.inbox.Answered(in.Seq)
		return replyOut{To: it.From, Tier: sent.tier()}, nil
	}
	if err := h.answer(ctx, m, payload); err != nil {
		return out, err
	}
	h.inbox.Answered(in.Seq)
	return replyOut{To: it.From, RequestID: it.RequestID, Tier: "stored", GivenUp: it.GivenUp}, nil
}

// answer replies to a request, by the connection that there is now. Its errors are for a model.
func (h *Host) answer(ctx context.Context, m *client.Message, payload json.RawMessage) error {
	c, err := h.link.client(ctx)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	if err = m.Reply(ctx, payload); errors.Is(err, client.ErrClosed) { // it came by a connection of before
		err = c.Reply(ctx, m.From, m.RequestID(), payload)
	}
	about := fmt.Sprintf("agent %.100q", m.From)
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return h.stuck("the cluster has not confirmed within %v that the answer to %s is stored: it may still be. Answer again: who asks takes the first answer", sendTime, about)
	}
	if err != nil {
		return h.failed(about, err)
	}
	return nil
}
