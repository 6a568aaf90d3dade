package client

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// Publish publishes data, which encodes as a JSON object, to all members. It
// returns when the cluster has stored it; the cluster sets data.from, and
// data.timestamp where it is missing.
func (s *Space) Publish(ctx context.Context, data any) error {
	body, err := eventData(data)
	if err != nil {
		return err
	}
	return s.sender.send(ctx, &frame{typ: "space.publish", to: laneKey{space: s.name}, id: newID("p"), body: body})
}

// PublishText publishes {"text": text}.
func (s *Space) PublishText(ctx context.Context, text string) error {
	return s.Publish(ctx, map[string]string{"text": text})
}

// Stream begins an event with data, which encodes as a JSON object or is nil,
// and whose text follows in parts, to all members at once.
func (s *Space) Stream(ctx context.Context, data any) (*Stream, error) {
	body, err := eventData(data)
	if err != nil {
		return nil, err
	}
	f := &frame{typ: "space.publish", to: laneKey{space: s.name}, id: newID("p"), more: true, body: body}
	st := s.sender.newStream(ctx, f, nil)
	answer, err := s.sender.ask(ctx, f)
	if err != nil {
		if ctx.Err() != nil {
			st.cancel(err)
		}
		return nil, err
	}
	if err := s.sender.out.rename(st.out, answer.EventID); err != nil {
		return nil, err
	}
	st.watch()
	return st, nil
}

// cancelEvent tells the edge that nothing more of another's event is wanted.
func (s *Space) cancelEvent(id string) {
	s.sender.out.force(&frame{once: true, other: &wire.Frame{Type: "space.event.cancel", Space: s.name, EventID: id}})
}

// eventData encodes data of an event.
func eventData(data any) (json.RawMessage, error) {
	body, err := encode(data)
	if err != nil {
		return nil, err
	}
	if body == nil {
		return json.RawMessage("{}"), nil
	}
	if !isObject(body) {
		return nil, agora.Errorf(agora.InvalidRequest, "data of an event must be an object")
	}
	return body, nil
}
