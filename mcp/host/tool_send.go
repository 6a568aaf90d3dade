package host

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var sendTool = &mcp.Tool{
	Name:  "agora_send",
	Title: "Send a message",
	Description: "Send a message to an agent, by its id. Returns how far it has come: stored (the cluster keeps it, it will arrive once, also if the agent is away), " +
		"delivered (its program has got it) or acked (it has taken it). Nothing needs to be sent again once it is stored. " +
		"For a question that needs an answer use agora_ask.",
}

type sendIn struct {
	To      string   `json:"to" jsonschema:"id of the agent, as agora_who lists it"`
	Text    spoken   `json:"text,omitempty" jsonschema:"what to say"`
	Payload anything `json:"payload,omitempty" jsonschema:"instead of text, or an object beside it: any JSON"`
	WaitS   *float64 `json:"wait_s,omitempty" jsonschema:"seconds to wait until it is acked, 0 to 50; 0 if left out: a model acknowledges what it has read, which may take long"`
}

type sendOut struct {
	ID   string `json:"id" jsonschema:"id of the message, for agora_why"`
	To   string `json:"to"`
	Tier string `json:"tier" jsonschema:"stored, delivered or acked"`
}

func (o sendOut) text() string {
	return fmt.Sprintf("Message %s to %s is %s.", o.ID, o.To, o.Tier)
}

func (h *Host) send(ctx context.Context, _ *mcp.CallToolRequest, in sendIn) (out sendOut, err error) {
	payload, err := body(in.Text, in.Payload)
	if err != nil {
		return out, err
	}
	m, err := h.dispatch(ctx, in.To, "", payload)
	if err != nil {
		return out, err
	}
	if wait := seconds(in.WaitS, 0); wait > 0 {
		waiting, cancel := context.WithTimeout(ctx, wait)
		defer cancel()
		_ = m.p.WaitFor(waiting, agora.Acked) // how far it came is told either way
	}
	return sendOut{m.p.ID(), in.To, m.tier()}, nil
}

// dispatch sends a message and waits until it is stored. Its errors are for a model.
func (h *Host) dispatch(ctx context.Context, to, request string, payload json.RawMessage) (*sending, error) {
	if to == "" {
		return nil, errors.New("say to which agent: agora_who lists the ids")
	}
	c, err := h.link.client(ctx)
	if err != nil {
		return nil, err
	}
	about := fmt.Sprintf("agent %.100q", to)
	ctx, cancel := context.WithTimeout(ctx, sendTime)
	defer cancel()
	p, err := c.SendAsync(ctx, to, payload, client.SendOptions{Receipts: bothTiers})
	if err != nil {
		return nil, h.failed(about, err)
	}
	m := h.sent.add(to, request, p)
	if err = p.Wait(ctx); err != nil && c.Err() != nil {
		return nil, advised(about, client.ErrUnknown)
	}
	if err != nil {
		return nil, h.unsent(about, m, err)
	}
	return m, nil
}

// unsent says what became of a message that is not known to be stored.
func (h *Host) unsent(about string, m *sending, err error) error {
	if !errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, context.Canceled) {
		return h.failed(about, err)
	}
	select {
	case <-m.p.Done():
		if trouble := h.link.trouble(); trouble != nil {
			return fmt.Errorf("not sent to %s: %w", about, trouble)
		}
		return fmt.Errorf("not sent to %s: the cluster did not take it within %v: try again", about, sendTime)
	default:
		return h.stuck("message %s to %s was written, but the cluster has not confirmed yet that it is stored; that goes on by itself. Do not send it again: agora_why with id %s says what becomes of it", m.p.ID(), about, m.p.ID())
	}
}

// since says how long ago something was, in seconds.
func since(t time.Time) int { return int(time.Since(t).Seconds()) }
