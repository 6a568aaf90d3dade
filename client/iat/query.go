package iat

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"

	"github.com/agora-relay/agora"
)

// Tool is a tool of an agent.
type Tool struct {
	Agent       string          `json:"agent,omitempty"` // whose it is
	Name        string          `json:"name"`
	Description string          `json:"description,omitempty"`
	Input       json.RawMessage `json:"input_schema,omitempty"`  // JSON Schema of its arguments; nil for none
	Output      json.RawMessage `json:"output_schema,omitempty"` // of its result
}

// ToolQuery says which tools are looked for. What is empty doesn't matter.
type ToolQuery struct {
	Name  string
	Agent string
	Words string // that name or description speak of
}

// maxAnswer is how many bytes of an answer are read.
const maxAnswer = 64 << 20

// Tools returns the tools of all agents that fit, whatever their dialect: it asks for them page by page. more says that
// there are others, which an edge of a version that knows no pages does not tell of. Errors are those of [Client.Send].
func (c *Client) Tools(ctx context.Context, q ToolQuery) (tools []Tool, more bool, err error) {
	for after := ""; ; {
		var page struct {
			Tools []Tool
			More  bool
			Next  string
		}
		if err := c.get(ctx, "/a2a/tools"+query("name", q.Name, "agent", q.Agent, "q", q.Words, "after", after), &page); err != nil {
			return nil, false, err
		}
		tools = append(tools, page.Tools...)
		if after = page.Next; after == "" {
			return tools, page.More, nil
		}
	}
}

// query returns the parameters of a URL that are not empty.
func query(pairs ...string) string {
	q := url.Values{}
	for i := 0; i < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	if len(q) == 0 {
		return ""
	}
	return "?" + q.Encode()
}

// get reads what an edge answers.
func (c *Client) get(ctx context.Context, path string, into any) error {
	return c.fetch(ctx, httpRequest{method: http.MethodGet, path: path}, into)
}

// fetch makes a request, and reads what an edge answers into a value.
func (c *Client) fetch(ctx context.Context, r httpRequest, into any) error {
	ctx, cancel := c.within(ctx)
	defer cancel()
	for t := (trier{c: c}); ; {
		resp, err := c.persist(ctx, r)
		if err != nil {
			return err
		}
		b, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer))
		resp.Body.Close()
		if err == nil {
			if err := json.Unmarshal(b, into); err != nil {
				return &Error{Code: agora.Unavailable, Message: "the edge's answer can't be read", HTTP: resp.StatusCode, Cause: err}
			}
			return nil
		}
		if err := t.again(ctx, broke(err)); err != nil {
			return err
		}
	}
}
