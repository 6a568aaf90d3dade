package host

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

var whyTool = &mcp.Tool{
	Name:  "agora_why",
	Title: "What became of a message",
	Description: "Say what has become of a message that you sent: how far it has come, and why not further. id is that of agora_send or agora_ask. " +
		"Without id: how the connection stands and how far your latest messages have come.",
	Annotations: &mcp.ToolAnnotations{ReadOnlyHint: true},
}

type whyIn struct {
	ID string `json:"id,omitempty" jsonschema:"id of a message or a question"`
}

type whyOut struct {
	Connected bool      `json:"connected"`
	Edge      string    `json:"edge,omitempty" jsonschema:"address of the edge that the connection is to"`
	Trouble   string    `json:"trouble,omitempty" jsonschema:"why there is no connection now"`
	Sent      []fateOut `json:"sent"`
	Cluster   any       `json:"cluster,omitempty" jsonschema:"what the cluster's operators' API says of the message, where that may be asked from here"`
	Note      string    `json:"note,omitempty"`
}

type fateOut struct {
	ID       string `json:"id"`
	To       string `json:"to"`
	Question string `json:"question,omitempty" jsonschema:"id of the question that it is, for agora_ask"`
	Tier     string `json:"tier" jsonschema:"unconfirmed, refused, stored, delivered or acked"`
	Meaning  string `json:"meaning"`
	AgeS     int    `json:"age_s"`
}

// maxFates bounds the messages that are told of.
const maxFates = 10

// meanings say what tiers are.
var meanings = map[string]string{
	"unconfirmed": "it was sent, or is about to be, and the cluster has not confirmed yet that it keeps it",
	refused:       "it was not stored",
	"stored":      "the cluster keeps it; its receiver has not been given it yet: it is away, or slow",
	"delivered":   "it was given to its receiver's program, which has not acknowledged it yet",
	"acked":       "its receiver has it",
}

func (h *Host) why(ctx context.Context, _ *mcp.CallToolRequest, in whyIn) (out whyOut, err error) {
	out.Edge, out.Connected = h.link.standing()
	if trouble := h.link.trouble(); trouble != nil {
		out.Trouble = trouble.Error()
	}
	out.Sent = []fateOut{}
	if in.ID == "" {
		for _, m := range h.sent.latest(maxFates) {
			out.Sent = append(out.Sent, m.fate())
		}
		return out, nil
	}
	id := in.ID
	m := h.sent.find(id)
	if m != nil {
		out.Sent = append(out.Sent, m.fate())
		id = m.p.ID()
	}
	if h.cfg.Why != nil {
		ctx, cancel := context.WithTimeout(ctx, firstWait)
		defer cancel()
		out.Cluster, err = h.cfg.Why(ctx, id)
		if b, marshalErr := json.Marshal(out.Cluster); marshalErr != nil || len(b) > maxResult-contentRoom {
			out.Cluster = nil
			out.Note = "What the cluster says is too long to be shown here."
		}
	}
	switch {
	case err != nil && m == nil:
		return out, fmt.Errorf("message %q was not sent by this server since it was started, and the cluster could not be asked: %w", in.ID, err)
	case err != nil:
		out.Note = err.Error()
	case m == nil && out.Cluster == nil:
		return out, fmt.Errorf("message %q was not sent by this server since it was started: agora_why without id lists what was", in.ID)
	}
	return out, nil
}

// fate is how far a message has come.
func (m *sending) fate() fateOut {
	tier := m.tier()
	meaning := meanings[tier]
	if tier == refused {
		meaning += ": " + brief(m.p.Wait(context.Background())) // it is known
	}
	return fateOut{ID: m.p.ID(), To: m.to, Question: m.request, Tier: tier, Meaning: meaning, AgeS: since(m.at)}
}

func (o whyOut) text() string {
	var b strings.Builder
	if o.Connected {
		fmt.Fprintf(&b, "Connected to %s.\n", o.Edge)
	} else {
		fmt.Fprintf(&b, "Not connected: %s.\n", o.Trouble)
	}
	for _, f := range o.Sent {
		fmt.Fprintf(&b, "%s to %s, %d s ago, is %s: %s.\n", f.ID, f.To, f.AgeS, f.Tier, f.Meaning)
	}
	if o.Cluster != nil {
		raw, _ := encode(o.Cluster)
		text, _ := cut(string(raw), 0, contentRoom/2)
		b.WriteString("The cluster: " + text + "\n")
	}
	return b.String() + o.Note
}
