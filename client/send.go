package client

import (
	"context"

	"github.com/agora-relay/agora"
)

// Send sends a payload to an agent and returns when the cluster has stored it.
// A payload is anything that encodes as JSON; [json.RawMessage] and []byte go
// out byte for byte. When ctx ends first the message is taken back if it was
// not written yet, or is refused; otherwise nobody knows.
//
// What the edge refuses with UNAVAILABLE is sent again, and what follows it to
// this receiver waits. After Config.Patience it fails with that error; then it is not stored.
func (c *Client) Send(ctx context.Context, to string, payload any) error {
	p, err := c.SendAsync(ctx, to, payload)
	if err != nil {
		return err
	}
	return p.Wait(ctx)
}

// SendAsync is Send that does not wait for the receipt. It blocks only while
// more than Config.MaxPending is under way.
func (c *Client) SendAsync(ctx context.Context, to string, payload any, opts ...SendOptions) (*Pending, error) {
	body, err := encode(payload)
	if err != nil {
		return nil, err
	}
	f := &frame{typ: "send", to: laneKey{agent: to}, id: newID("m"), body: body}
	for _, o := range opts {
		if o.Receipts &^= agora.Stored; o.Receipts != 0 {
			f.watch, f.tiers = newWatch(o.Receipts), o.Receipts
		}
	}
	f.await()
	if err := c.out.add(ctx, f); err != nil {
		return nil, err
	}
	return &Pending{c.sender, f}, nil
}

// Pending is a message under way.
type Pending struct {
	sender *sender
	f      *frame
}

// ID returns the id of the message's frame, by which the cluster's operators find it (`agora why`).
func (p *Pending) ID() string { return p.f.id }

// Done is closed once it is known what became of the message: Wait returns at once then.
func (p *Pending) Done() <-chan struct{} { return p.f.done }

// Wait returns what Send would.
func (p *Pending) Wait(ctx context.Context) error { return p.sender.wait(ctx, p.f) }
