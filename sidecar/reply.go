package sidecar

import (
	"bufio"
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"mime"
	"net/http"
	"strings"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/wire"
	"github.com/agora-relay/agora/wire/p2p"
)

// maxEvent bounds the data of one event of an answer.
const maxEvent = 1 << 20

// reply makes an answer of the agent the reply to a message, and reports whether the message is done with. JSON is the
// payload, and other text a string, where it comes whole and is of no more than Limits.Whole; else the reply is a
// stream of text. Of events it is their data, one chunk each, unless the answer is wanted as it is. Bytes that are no
// text are {"media","data"}.
func (b *mail) reply(ctx context.Context, m *client.Message, x *answer, asIs bool) bool {
	media, _, err := mime.ParseMediaType(x.resp.Header.Get("Content-Type"))
	if err != nil {
		media = ""
	}
	isJSON := media == "application/json" || strings.HasSuffix(media, "+json")
	if media == "text/event-stream" && !asIs {
		return b.stream(ctx, m, &eventReader{r: bufio.NewReader(x)})
	}
	if !isJSON && (x.resp.ContentLength < 0 && !x.empty() || x.resp.ContentLength > int64(b.limits.Whole)) {
		return b.stream(ctx, m, plainReader{x})
	}
	begin, err := io.ReadAll(io.LimitReader(x, int64(b.limits.Whole)+1))
	switch {
	case err != nil:
		return givenUp(ctx) || b.replyFault(ctx, m, err)
	case len(begin) > b.limits.Whole:
		return b.stream(ctx, m, plainReader{io.MultiReader(bytes.NewReader(begin), x)})
	}
	return b.replied(m, m.Reply(ctx, payloadOf(media, isJSON, begin)))
}

// payloadOf returns the payload that a whole answer is.
func payloadOf(media string, isJSON bool, body []byte) any {
	switch text := bytes.TrimSpace(body); {
	case len(text) == 0:
		return json.RawMessage("null")
	case isJSON && json.Valid(text) && utf8.Valid(text):
		return json.RawMessage(text)
	case utf8.Valid(body):
		return string(body)
	}
	if media == "" {
		media = "application/octet-stream"
	}
	return map[string]string{"media": media, "data": base64.StdEncoding.EncodeToString(body)}
}

// replyFault replies with a failure, where a reply is expected, and reports whether the message is done with.
func (b *mail) replyFault(ctx context.Context, m *client.Message, why error) bool {
	if m.RequestID() == "" || m.IsReply {
		return true
	}
	return b.replied(m, m.Reply(ctx, json.RawMessage(wire.AppendReplyError(nil, replyError(why)))))
}

// replyError returns a failure as a reply says it.
func replyError(why error) *agora.Error {
	e := *p2p.FaultOf(why).Err
	if short, ok := p2p.ParseFault(p2p.AppendFault(nil, why)); ok { // as long as others are told it
		e.Message = short.Err.Message
	}
	return &e
}

// replied notes how a reply went, and reports whether the message is done with: not where the sidecar ends
// before it is stored.
func (b *mail) replied(m *client.Message, err error) bool {
	if err == nil || errors.Is(err, client.ErrCancelled) {
		return true
	}
	if errors.Is(err, client.ErrClosed) || b.state.ending.Load() && errors.Is(err, context.Canceled) {
		return false
	}
	b.log.Info("a reply was not taken", "to", m.From, "err", err)
	return true
}

// pieces is an answer in pieces of text; io.EOF behind the last.
type pieces interface {
	next() ([]byte, error)
}

// stream replies with pieces as they come. What breaks off is cancelled, so that it never looks whole.
func (b *mail) stream(ctx context.Context, m *client.Message, from pieces) bool {
	first, err := from.next()
	if err != nil && !errors.Is(err, io.EOF) {
		return givenUp(ctx) || b.replyFault(ctx, m, err)
	}
	life, free := b.lasting(ctx)
	out, failed := m.ReplyStream(life, nil)
	if failed != nil {
		free()
		return b.replied(m, failed)
	}
	for piece := first; err == nil; piece, err = from.next() {
		if _, failed := out.Write(piece); failed != nil {
			free()
			return b.replied(m, failed)
		}
	}
	if errors.Is(err, io.EOF) {
		defer free()
		return b.replied(m, out.Close())
	}
	if errors.Is(err, context.Canceled) && b.state.ending.Load() {
		return true // the end of the session aborts it, as that of any agent does
	}
	defer free()
	out.Cancel()
	if givenUp(ctx) {
		return true
	}
	b.log.Info("an answer of the agent broke off", "to", m.From, "err", err)
	return true
}

// plainReader is a body, piece by piece as it comes.
type plainReader struct{ r io.Reader }

func (p plainReader) next() ([]byte, error) {
	b := make([]byte, pieceSize)
	for {
		n, err := p.r.Read(b)
		if n > 0 {
			return b[:n], nil // an error comes again
		}
		if err != nil {
			return nil, err
		}
	}
}

// eventReader is the data of events, each a piece.
type eventReader struct{ r *bufio.Reader }

func (e *eventReader) next() ([]byte, error) {
	var data []byte
	some := false
	for {
		line, err := e.line()
		if errors.Is(err, io.EOF) && some {
			return data, nil // the end comes again
		}
		if err != nil {
			return nil, err
		}
		if len(line) == 0 {
			if some {
				return data, nil
			}
			continue
		}
		rest, is := bytes.CutPrefix(line, []byte("data"))
		if !is || len(rest) > 0 && rest[0] != ':' {
			continue // comments, names, ids
		}
		if some {
			data = append(data, '\n')
		}
		some = true
		data = append(data, bytes.TrimPrefix(bytes.TrimPrefix(rest, []byte(":")), []byte(" "))...)
		if len(data) > maxEvent {
			return nil, tooLargeEvent()
		}
	}
}

func tooLargeEvent() error {
	return p2p.NewFault(http.StatusBadGateway, "an event of the agent's answer is larger than %d bytes", maxEvent)
}

// line returns a line without its end.
func (e *eventReader) line() ([]byte, error) {
	var all []byte
	for {
		b, err := e.r.ReadSlice('\n')
		all = append(all, b...)
		switch {
		case err == nil, errors.Is(err, io.EOF) && len(all) > 0:
			return bytes.TrimSuffix(bytes.TrimSuffix(all, []byte("\n")), []byte("\r")), nil
		case !errors.Is(err, bufio.ErrBufferFull):
			return nil, err
		case len(all) > maxEvent+64:
			return nil, tooLargeEvent()
		}
	}
}
