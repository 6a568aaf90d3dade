package member

import (
	"context"
	"encoding/json"

	"github.com/agora-relay/agora/client"
)

// Bytes of an answer: what goes out in one piece, and what each piece of a longer one has.
const (
	maxWhole = 512 << 10
	maxPiece = 32 << 10
)

// answer is the reply to one call. It is whole, unless the tool tells of its progress or the result is long: then it is
// streamed. Progress is chunks, and the result the payload of the end. A long result is the text of the chunks; where
// progress has come before it, the payload of the end says at which byte of them it begins: {"result_at":n}. One
// goroutine uses it.
type answer struct {
	m      *Member
	msg    *client.Message
	said   context.Context // in which it is sent
	stream *client.Stream  // nil while there is none
	sent   int             // bytes of its chunks
	err    error           // why it can't be sent
}

// piece sends a piece of text. It blocks while the caller does not take it.
func (a *answer) piece(text string) {
	if a.stream == nil && a.err == nil {
		a.stream, a.err = a.msg.ReplyStream(a.said, nil)
	}
	if a.err != nil {
		return
	}
	n, err := a.stream.WriteString(text)
	a.sent += n
	a.err = err
}

// end sends what the call has come to, and returns when that is stored or can't be.
func (a *answer) end(payload json.RawMessage) {
	begins := a.sent
	long := len(payload) > maxWhole
	if long {
		for text := plain(payload); len(text) > 0 && a.err == nil; {
			n := min(len(text), maxPiece)
			a.piece(text[:n])
			text = text[n:]
		}
	}
	switch {
	case a.err != nil:
	case a.stream == nil:
		a.err = a.msg.Reply(a.said, payload)
	case !long:
		a.err = a.stream.CloseWith(payload)
	case begins == 0:
		a.err = a.stream.Close()
	default:
		a.err = a.stream.CloseWith(map[string]int{"result_at": begins})
	}
	if a.err != nil {
		a.cancel()
		a.m.cfg.Log.Debug("an answer could not be sent", "to", a.msg.From, "err", a.err)
	}
}

// cancel gives up what is streamed.
func (a *answer) cancel() {
	if a.stream != nil {
		a.stream.Cancel()
	}
}

// plain returns a payload as text: that of a string, else the JSON.
func plain(payload json.RawMessage) string {
	var text string
	if json.Unmarshal(payload, &text) == nil {
		return text
	}
	return string(payload)
}
