package wire

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// envelopes makes and reads the envelopes of one agent.
type envelopes struct {
	id   string
	last atomic.Uint64 // number of the last request
}

// head returns an envelope up to the end of its msg_id, which is to be followed by that of tail.
func (e *envelopes) head() string { return `{"header":{"msg_id":"` }

// tail returns what follows the msg_id of an envelope up to its payload, with more members of header and metadata if
// any.
func (e *envelopes) tail(kind, to, header, metadata string) string {
	return `","type":"` + kind + `","from":"` + e.id + `","to":"` + to + `"` + header + `},"metadata":{"ttl":3` + metadata + `},"payload":`
}

// stream returns the envelope that opens a stream to another agent, and one that carries a chunk.
func (e *envelopes) stream(w loadgen.Way) (open, chunk []byte) {
	open = []byte(e.head() + "s-" + w.To + e.tail("request", w.To, "", `,"stream":true`) + `{}}`)
	return open, []byte(e.head() + "c-" + loadgen.Blank + e.tail("chunk", w.To, `,"parent_id":"s-`+w.To+`"`, "") + `{"text":"` + string(w.Text) + `"}}`)
}

// message returns an envelope that carries a receipted notification to another agent.
func (e *envelopes) message(w loadgen.Way) []byte {
	return []byte(e.head() + "n-" + loadgen.Blank + e.tail("notification", w.To, "", `,"receipts":["stored"]`) + `{"text":"` + string(w.Text) + `"}}`)
}

// request returns an envelope that asks another agent, and its msg_id.
func (e *envelopes) request(to string, text []byte) (envelope []byte, id string) {
	id = "q-" + strconv.FormatUint(e.last.Add(1), 10)
	return fmt.Appendf(nil, `%s%s%s{"action":"x","text":"%s"}}`, e.head(), id, e.tail("request", to, "", ""), text), id
}

// response returns the envelope that answers one that asks, with the same text; nil where it asks nothing.
func (e *envelopes) response(asks []byte) []byte {
	id, _ := cut(asks, `"msg_id":"`)
	from, _ := cut(asks, `"from":"`)
	text, ok := cut(asks, `"text":"`)
	if kind, _ := cut(asks, `"type":"`); string(kind) != "request" || !ok {
		return nil
	}
	return fmt.Appendf(nil, `%sr-%s%s{"text":"%s"}}`, e.head(), id, e.tail("response", string(from), `,"parent_id":"`+string(id)+`"`, ""), text)
}

// receiveEnvelope hands on what an envelope says.
func receiveEnvelope(b []byte, r loadgen.Receiver, at int64) {
	switch action, _ := cut(b, `"action":"`); string(action) {
	case "receipt":
		if s, ok := loadgen.Find(b); ok {
			r.Receipted(s, at)
		}
		return
	case "gap", "reconnect":
		fault(r, b)
		return
	}
	if s, ok := loadgen.Find(b); ok {
		r.Arrived(s, at)
	} else if bytes.Contains(b, []byte(`"error":{"code"`)) {
		fault(r, b)
	}
}

// IATSocket is an agent's connection to an edge that speaks envelopes by WebSocket.
type IATSocket struct {
	*socket.Conn
	envelopes
}

// DialIATSocket connects an agent to the edge at addr.
func DialIATSocket(ctx context.Context, addr, id, token string) (*IATSocket, error) {
	s, err := upgrade(ctx, addr, "/a2a/ws?"+url.Values{"agent": {id}}.Encode(), token)
	if err != nil {
		return nil, err
	}
	return &IATSocket{Conn: s, envelopes: envelopes{id: id}}, nil
}

// Open implements loadgen.Agent. There are no spaces at this door. Notifications are receipted when they are stored.
func (s *IATSocket) Open(_ context.Context, w loadgen.Way) (loadgen.Line, error) {
	switch w.Kind {
	case loadgen.FanOut:
		return nil, loadgen.ErrNone
	case loadgen.OneShot:
		return loadgen.NewTemplate(socket.AppendText(nil, s.message(w))), nil
	}
	open, chunk := s.stream(w)
	return loadgen.NewTemplate(socket.AppendText(nil, chunk)), s.Send(socket.AppendText(nil, open))
}

// Receive implements loadgen.Agent.
func (s *IATSocket) Receive(r loadgen.Receiver) error {
	for {
		b, err := s.Next()
		if err != nil {
			return err
		}
		receiveEnvelope(b, r, s.At())
	}
}

// Ask asks another agent, and returns when its response has come. Receive is not called meanwhile.
func (s *IATSocket) Ask(to string, text []byte) error {
	asks, id := s.request(to, text)
	if err := s.Send(socket.AppendText(nil, asks)); err != nil {
		return err
	}
	for {
		b, err := s.Next()
		if err != nil {
			return err
		}
		if parent, _ := cut(b, `"parent_id":"`); string(parent) == id {
			return answered(b, text)
		}
	}
}

// answered returns an error where a response does not have the text.
func answered(response, text []byte) error {
	if !bytes.Contains(response, text) {
		return fmt.Errorf("the answer is %s", response)
	}
	return nil
}

// Echo answers those that ask until the connection ends.
func (s *IATSocket) Echo() error {
	for {
		b, err := s.Next()
		if err != nil {
			return err
		}
		if r := s.response(b); r != nil {
			if err := s.Send(socket.AppendText(nil, r)); err != nil {
				return err
			}
		}
	}
}

// eventLines cuts what comes of a stream of events into them, piece by piece.
type eventLines struct{ rest []byte }

// feed hands on the data of every event that is complete. Data are good until the call returns.
func (l *eventLines) feed(b []byte, data func([]byte)) {
	if len(l.rest) > 0 {
		l.rest = append(l.rest, b...)
		b = l.rest
	}
	for {
		event, rest, ok := bytes.Cut(b, []byte("\n\n"))
		if !ok {
			break
		}
		if _, d, ok := bytes.Cut(event, []byte("data: ")); ok {
			data(d)
		}
		b = rest
	}
	l.rest = append(l.rest[:0], b...)
}

// eventsPath returns that of the downlink of an agent.
func eventsPath(id string) string { return "/a2a/events?" + url.Values{"agent": {id}}.Encode() }

// postedWell returns an error where a POST was not answered well.
func postedWell(status int, body []byte) error {
	if status == 200 || status == 202 {
		return nil
	}
	return fmt.Errorf("answered %d: %s", status, strings.TrimSpace(string(body)))
}
