package wire

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"
)

// envelopes makes and reads the envelopes of one agent.
type envelopes struct {
	id   string
	last atomic.Uint64 // number of the last request
}

// head returns an envelope up to the end of its msg_id, which is to be followed by that of tail.
func (e *envelopes) head() string { return `{"header":{"msg_id":"` }

// tail returns what follows the msg_id of an envelope up to its payload, with more members of header and metadata if any.
func (e *envelopes) tail(kind, to, header, metadata string) string {
	return `","type":"` + kind + `","from":"` + e.id + `","to":"` + to + `"` + header + `},"metadata":{"ttl":3` + metadata + `},"payload":`
}

// stream returns the envelope that opens a stream to another agent, and what carries its chunks.
func (e *envelopes) stream(to string) (open []byte, chunk Line) {
	open = []byte(e.head() + "s-" + to + e.tail("request", to, "", `,"stream":true`) + `{}}`)
	head, tail := e.head()+"c-", e.tail("chunk", to, `,"parent_id":"s-`+to+`"`, "")+`{"text":"`
	return open, func(dst []byte, id uint64, text []byte) []byte {
		dst = append(strconv.AppendUint(append(dst, head...), id, 10), tail...)
		return append(append(dst, text...), `"}}`...)
	}
}

// message returns what carries receipted notifications to another agent.
func (e *envelopes) message(to string) Line {
	head, tail := e.head()+"n-", e.tail("notification", to, "", `,"receipts":["stored"]`)+`{"text":"`
	return func(dst []byte, id uint64, text []byte) []byte {
		dst = append(strconv.AppendUint(append(dst, head...), id, 10), tail...)
		return append(append(dst, text...), `"}}`...)
	}
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
func receiveEnvelope(b []byte, h Handler) {
	switch action, _ := cut(b, `"action":"`); string(action) {
	case "receipt":
		receive(b, `"parent_id":"n-`, func(id []byte) { h.Receipt(number(id)) })
		return
	case "gap", "reconnect":
		h.Fault(string(b))
		return
	}
	if text, ok := cut(b, `"text":"`); ok {
		h.Text(text)
	} else if text, ok := cut(b, `"payload":"`); ok {
		h.Text(text)
	} else if bytes.Contains(b, []byte(`"error":{"code"`)) {
		h.Fault(string(b))
	}
}

// IATSocket is an agent's connection to an edge that speaks envelopes by WebSocket.
type IATSocket struct {
	*Socket
	envelopes
}

// DialIATSocket connects an agent to the edge at addr.
func DialIATSocket(addr, id, token string) (*IATSocket, error) {
	s, err := Upgrade(addr, "/a2a/ws?"+url.Values{"agent": {id}}.Encode(), "Authorization: Bearer "+token)
	if err != nil {
		return nil, err
	}
	s.Ready()
	return &IATSocket{Socket: s, envelopes: envelopes{id: id}}, nil
}

// framed has a line be a frame. The room for what it carries is the line's own.
func framed(l Line) Line {
	var room []byte
	return func(dst []byte, id uint64, text []byte) []byte {
		room = l(room[:0], id, text)
		return AppendText(dst, "", room, "")
	}
}

// Stream starts a stream to another agent and returns what carries its chunks.
func (s *IATSocket) Stream(to string) (Line, error) {
	open, chunk := s.stream(to)
	_, err := s.Write(AppendText(nil, "", open, ""))
	return framed(chunk), err
}

// Message returns what carries notifications to another agent. They are receipted when they are stored.
func (s *IATSocket) Message(to string) (Line, error) { return framed(s.message(to)), nil }

// Space returns ErrNone: there are no spaces at this door.
func (s *IATSocket) Space(string) (Line, error) { return nil, ErrNone }

// Receive hands on what arrives until the connection ends.
func (s *IATSocket) Receive(h Handler) error {
	for {
		b, err := s.Next()
		if err != nil {
			return err
		}
		receiveEnvelope(b, h)
	}
}

// Ask asks another agent, and returns when its response has come. Receive is not called meanwhile.
func (s *IATSocket) Ask(to string, text []byte) error {
	asks, id := s.request(to, text)
	if _, err := s.Write(AppendText(nil, "", asks, "")); err != nil {
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
			if _, err := s.Write(AppendText(nil, "", r, "")); err != nil {
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
