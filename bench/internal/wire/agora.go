package wire

import (
	"bytes"
	"fmt"
	"net/url"
	"strconv"
)

// Agora is an agent's connection to an Agora edge.
type Agora struct {
	*Socket
	id, token string
	resume    string // takes the session over at another connection
	last      []byte // the last frame that Receive handed on
	asked     uint64 // how often it has asked
	unacked   int    // texts that came since the last acknowledgement
	ack       []byte // the frame that acknowledges
}

// ackEvery is how many texts an agent takes before it says that it has them.
const ackEvery = 64

// DialAgora connects an agent to the edge at addr.
func DialAgora(addr, id, token string) (*Agora, error) {
	a := &Agora{id: id, token: token}
	return a, a.dial(addr, url.Values{"agent_id": {id}})
}

// Resume connects the agent again after its connection was lost, and goes on with its session after what it received last.
func (a *Agora) Resume(addr string) (*Agora, error) {
	q := url.Values{"agent_id": {a.id}, "resume_token": {a.resume}}
	if _, seq, ok := bytes.Cut(a.last, []byte(`"seq":`)); ok {
		q.Set("last_seq", strconv.FormatUint(number(seq), 10))
	}
	next := &Agora{id: a.id, token: a.token}
	return next, next.dial(addr, q)
}

func (a *Agora) dial(addr string, q url.Values) (err error) {
	if a.Socket, err = Upgrade(addr, "/ws?"+q.Encode(), "Authorization: Bearer "+a.token); err != nil {
		return err
	}
	frame, err := a.await(`{"type":"agent.registered"`)
	if err != nil {
		a.Close()
		return err
	}
	if resume, ok := cut(frame, `"resume_token":"`); ok {
		a.resume = string(resume)
	}
	a.Ready()
	return nil
}

// await reads until a frame of one type; an error frame ends it.
func (a *Agora) await(head string) ([]byte, error) {
	for {
		frame, err := a.Next()
		switch {
		case err != nil:
			return nil, err
		case bytes.HasPrefix(frame, []byte(head)):
			return frame, nil
		case bytes.HasPrefix(frame, []byte(`{"type":"error"`)):
			return nil, fmt.Errorf("the edge says %s", frame)
		}
	}
}

// Stream starts a stream to another agent and returns what carries its chunks.
func (a *Agora) Stream(to string) (Line, error) {
	_, err := a.Write(AppendText(nil, `{"type":"send","to":"`+to+`","stream_id":"s","stream":true}`, nil, ""))
	head := `{"type":"send_chunk","to":"` + to + `","stream_id":"s","chunk":"`
	return func(dst []byte, _ uint64, text []byte) []byte { return AppendText(dst, head, text, `"}`) }, err
}

// Message returns what carries one-shots to another agent. They are receipted when they are stored.
func (a *Agora) Message(to string) (Line, error) {
	head := []byte(`{"type":"send","to":"` + to + `","payload":"`)
	return func(dst []byte, id uint64, text []byte) []byte {
		var b [32]byte
		tail := append(strconv.AppendUint(append(b[:0], `","id":"`...), id, 10), `"}`...)
		return AppendText(dst, head, text, tail)
	}, nil
}

// Space joins a space and returns what carries events to its members, this one included.
func (a *Agora) Space(name string) (Line, error) {
	if _, err := a.Write(AppendText(nil, `{"type":"space.join","space":"`+name+`"}`, nil, "")); err != nil {
		return nil, err
	}
	if _, err := a.await(`{"type":"space.joined"`); err != nil {
		return nil, fmt.Errorf("join: %w", err)
	}
	head := `{"type":"space.publish","space":"` + name + `","data":{"text":"`
	return func(dst []byte, _ uint64, text []byte) []byte { return AppendText(dst, head, text, `"}}`) }, nil
}

// Ask asks another agent, and returns when its reply has come. Receive is not called meanwhile.
func (a *Agora) Ask(to string, text []byte) error {
	a.asked++
	id := strconv.FormatUint(a.asked, 10)
	if _, err := a.Write(AppendText(nil, `{"type":"send","to":"`+to+`","payload":{"request_id":"`+id+`","text":"`, text, `"}}`)); err != nil {
		return err
	}
	for {
		frame, err := a.await(`{"type":"reply"`)
		if err != nil {
			return err
		}
		if of, _ := cut(frame, `"request_id":"`); string(of) == id {
			return answered(frame, text)
		}
	}
}

// Echo replies to those that ask until the connection ends.
func (a *Agora) Echo() error {
	for {
		frame, err := a.Next()
		if err != nil {
			return err
		}
		text, ok := cut(frame, `"text":"`)
		if !ok {
			continue
		}
		from, _ := cut(frame, `"from":"`)
		id, _ := cut(frame, `"request_id":"`)
		if _, err := a.Write(AppendText(nil, `{"type":"reply","to":"`+string(from)+`","payload":{"request_id":"`+string(id)+`","text":"`, text, `"}}`)); err != nil {
			return err
		}
	}
}

// Receive hands on what arrives until the connection ends. What came to the agent itself it acknowledges now and then.
func (a *Agora) Receive(h Handler) error {
	for {
		frame, err := a.Next()
		if err != nil {
			return err
		}
		switch kind, _ := cut(frame, `{"type":"`); string(kind) {
		case "message_chunk":
			a.last = append(a.last[:0], frame...)
			receive(frame, `"chunk":"`, h.Text)
			err = a.acknowledge(frame)
		case "message":
			receive(frame, `"payload":"`, h.Text)
			err = a.acknowledge(frame)
		case "space.event":
			receive(frame, `"text":"`, h.Text)
		case "receipt":
			receive(frame, `"request_id":"`, func(id []byte) { h.Receipt(number(id)) })
		case "error", "gap", "agent.reconnect":
			h.Fault(string(frame))
		}
		if err != nil {
			return err
		}
	}
}

// acknowledge says that everything up to a frame has come, if that was not said for a while.
func (a *Agora) acknowledge(frame []byte) error {
	if a.unacked++; a.unacked < ackEvery {
		return nil
	}
	_, seq, ok := bytes.Cut(frame, []byte(`"seq":`))
	if !ok {
		return nil
	}
	a.unacked = 0
	var b [20]byte
	a.ack = AppendText(a.ack[:0], `{"type":"ack","seq":`, strconv.AppendUint(b[:0], number(seq), 10), "}")
	_, err := a.Write(a.ack)
	return err
}

func receive(frame []byte, key string, f func([]byte)) {
	if text, ok := cut(frame, key); ok {
		f(text)
	}
}
