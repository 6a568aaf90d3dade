package iat

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"iter"
	"net/http"
	"net/url"
	"time"
)

// ApprovalState is how an approval stands.
type ApprovalState string

// The states.
const (
	Pending  ApprovalState = "pending"
	Approved ApprovalState = "approved"
	Denied   ApprovalState = "denied"
	Expired  ApprovalState = "expired" // nobody has decided in time: it is not approved
)

// Approval is what an agent has asked approval for. Times are Unix seconds.
type Approval struct {
	ID      string          `json:"id"`
	Agent   string          `json:"agent"` // who asks
	To      string          `json:"to"`    // who is asked; "agora" for whoever may decide
	State   ApprovalState   `json:"state"`
	Payload json.RawMessage `json:"payload"`
	Asked   int64           `json:"asked_at"`
	Expires int64           `json:"expires_at,omitempty"`
	By      string          `json:"by,omitempty"` // who has decided
	Decided int64           `json:"decided_at,omitempty"`
	Note    string          `json:"note,omitempty"`

	Execute string `json:"-"` // the task that it belongs to, where a host is asked; may be empty
}

// What returns what is asked for: the member "what" of the payload, where that is a text, else all of the payload but
// its action.
func (a *Approval) What() string {
	var members map[string]json.RawMessage
	if json.Unmarshal(a.Payload, &members) != nil {
		return string(a.Payload)
	}
	var text string
	if json.Unmarshal(members["what"], &text) == nil && text != "" {
		return text
	}
	if delete(members, "action"); len(members) == 1 && members["what"] != nil {
		return string(members["what"])
	}
	b, err := marshal(members)
	if err != nil {
		return string(a.Payload)
	}
	return string(b)
}

// ApprovalQuery says which approvals are looked for. What is empty doesn't matter.
type ApprovalQuery struct {
	State ApprovalState
	Agent string // who has asked
}

func (q ApprovalQuery) path(after string) string {
	return "/a2a/approvals" + query("state", string(q.State), "agent", q.Agent, "after", after)
}

// Approvals returns the approvals that the caller may see and that fit, those asked first first: it asks for them page
// by page. Errors are those of [Client.Send].
func (c *Client) Approvals(ctx context.Context, q ApprovalQuery) (all []Approval, err error) {
	for after := ""; ; {
		var page struct {
			Approvals []Approval
			Next      string
		}
		if err := c.get(ctx, q.path(after), &page); err != nil {
			return nil, err
		}
		all = append(all, page.Approvals...)
		if after = page.Next; after == "" {
			return all, nil
		}
	}
}

// Approval returns one approval. The agent is who has asked; it may be empty where only one has used that id. Errors:
// NOT_FOUND, and those of [Client.Send].
func (c *Client) Approval(ctx context.Context, id, agent string) (a Approval, err error) {
	err = c.get(ctx, "/a2a/approvals/"+url.PathEscape(id)+query("agent", agent), &a)
	return a, err
}

// Decision says what becomes of an approval.
type Decision struct {
	Approved bool
	Note     string // for the asker; may be empty
	Agent    string // who has asked; may be empty where only one has used the id
}

// Decide decides an approval, in the name of Config.Agent where that is there, and returns how it stands then. Errors:
// NOT_FOUND, FORBIDDEN, an [*Error] with HTTP 409 where it is decided already, and those of [Client.Send].
func (c *Client) Decide(ctx context.Context, id string, d Decision) (a Approval, err error) {
	body, err := marshal(struct {
		Approved bool   `json:"approved"`
		Note     string `json:"note,omitempty"`
	}{d.Approved, d.Note})
	if err != nil {
		return a, err
	}
	path := "/a2a/approvals/" + url.PathEscape(id) + query("agent", d.Agent, "as", c.cfg.Agent)
	err = c.fetch(ctx, httpRequest{method: http.MethodPost, path: path, body: body}, &a)
	return a, err
}

// WatchApprovals yields each approval that is there and fits, and then each change, until ctx ends or an edge refuses
// permanently: its last pair has that error. Where the connection breaks it begins again: what was there already may
// come again.
func (c *Client) WatchApprovals(ctx context.Context, q ApprovalQuery) iter.Seq2[Approval, error] {
	return func(yield func(Approval, error) bool) {
		ctx, cancel := c.within(ctx)
		defer cancel()
		t := trier{c: c}
		for {
			err := c.watchOnce(ctx, q.path(""), &t, yield)
			if errors.Is(err, errLeft) {
				return
			}
			if err = t.again(ctx, err); err != nil {
				yield(Approval{}, err)
				return
			}
		}
	}
}

// errLeft says that nobody reads any more.
var errLeft = errors.New("the loop was left")

// watchOnce yields approvals until the connection ends.
func (c *Client) watchOnce(ctx context.Context, path string, t *trier, yield func(Approval, error) bool) error {
	r := httpRequest{method: http.MethodGet, path: path, header: http.Header{"Accept": {"text/event-stream"}}}
	resp, end, err := c.attempt(ctx, r)
	if err != nil {
		return err
	}
	s := newEvents(resp.Body, c.silence(), end)
	defer s.close()
	begun := time.Now()
	for {
		v, err := s.next()
		if time.Since(begun) > c.cfg.KeepAlive {
			t.worked()
		}
		if err != nil {
			return broke(cmpEOF(err))
		}
		var e Envelope
		if json.Unmarshal(v.data, &e) == nil {
			if f := faultOf(&e); f != nil {
				return f
			}
		}
		var a Approval
		if json.Unmarshal(v.data, &a) != nil || a.ID == "" {
			continue
		}
		if !yield(a, nil) {
			return errLeft
		}
	}
}

// cmpEOF says of an end that it was not to be.
func cmpEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}
