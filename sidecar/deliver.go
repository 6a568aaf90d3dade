package sidecar

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/textproto"
	"net/url"
	"strconv"
	"sync"
	"time"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/wire/p2p"
)

// Headers of what is posted to the agent.
const (
	headerFrom        = "Agora-From"
	headerKind        = "Agora-Kind" // message, reply, event, roster
	headerSeq         = "Agora-Seq"
	headerRedelivered = "Agora-Redelivered"
	headerRequest     = "Agora-Request-Id"
	headerStream      = "Agora-Stream"
	headerSpace       = "Agora-Space"
	headerMedia       = "Agora-Media"
	headerDeadline    = "Agora-Deadline-Ms" // how long the sender still waits
)

// delivery is how messages and events are posted to the agent.
type delivery struct {
	agent  *agent
	url    *url.URL // nil where messages are refused
	limits *Limits
	log    *slog.Logger
	stats  *stats
}

// post posts a message to the agent, again and again until that takes it, and replies with what it answers. taken is
// called when the agent has it, once or more. It reports whether the message is done with: not where ctx, in which
// nothing new is begun, ends before the agent has taken it, or work while it answers.
func (b *mail) post(ctx, work context.Context, m *client.Message, taken func()) bool {
	if b.url == nil {
		b.stats.refused.Add(1)
		return b.replyFault(work, m, p2p.NewFault(http.StatusNotFound, "the agent takes no messages: it is reached by handoff and by calls of its skills"))
	}
	within, cancel := m.Context(work)
	defer cancel()
	for n, begun := 1, time.Now(); ; n++ {
		if ctx.Err() != nil {
			return false
		}
		q := b.posted(m, n)
		if m.RequestID() != "" && !m.IsReply {
			q.sent = taken // it is not tried again, so that nothing has to wait for its answer
		}
		x, err := b.agent.put(within, q)
		if err == nil {
			defer x.Close()
			taken()
			b.stats.delivered.Add(1)
			return b.answered(within, m, x)
		}
		if work.Err() != nil {
			return false
		}
		if m.RequestID() != "" && !m.IsReply { // who asks is waiting, or knows that it is over
			return givenUp(within) || b.replyFault(work, m, err)
		}
		if !comesBack(err) || q.stream.began() || within.Err() != nil || time.Since(begun) > b.limits.Keep {
			b.stats.dropped.Add(1)
			b.log.Warn("a message is dropped that the agent does not take", "from", m.From, "seq", m.Seq, "err", err)
			return true
		}
		b.log.Debug("a message is tried again", "from", m.From, "seq", m.Seq, "err", err)
		pause.For(ctx, b.limits.after(n))
	}
}

// answered makes the answer to a message its reply, where it has one.
func (b *mail) answered(ctx context.Context, m *client.Message, x *answer) bool {
	if m.IsReply || x.empty() {
		return true
	}
	return b.reply(ctx, m, x, false)
}

// comesBack reports whether an agent that has answered so may take the same message later: it is away, does not answer,
// or says so itself.
func comesBack(err error) bool {
	if r, ok := errors.AsType[*refusal](err); ok {
		switch r.status {
		case http.StatusRequestTimeout, http.StatusTooEarly, http.StatusTooManyRequests, http.StatusBadGateway, http.StatusServiceUnavailable, http.StatusGatewayTimeout:
			return true
		}
		return false
	}
	_, away := errors.AsType[*awayError](err)
	return away || errors.Is(err, errLate)
}

// posted returns a message as it is posted the nth time.
func (b *mail) posted(m *client.Message, n int) question {
	q := question{method: http.MethodPost, url: b.url, within: b.limits.Deliver, header: http.Header{"Content-Type": {"application/json"}}}
	set := func(name, value string) {
		if value = oneLine(value); value != "" {
			q.header.Set(name, value)
		}
	}
	kind := "message"
	if m.IsReply {
		kind = "reply"
	}
	set(headerFrom, m.From)
	set(headerKind, kind)
	set(headerRequest, m.RequestID())
	set(headerMedia, m.Media)
	set("Traceparent", m.Traceparent)
	if !m.Deadline.IsZero() {
		set(headerDeadline, strconv.FormatInt(max(1, time.Until(m.Deadline).Milliseconds()), 10))
	}
	if m.Seq > 0 {
		set(headerSeq, strconv.FormatUint(m.Seq, 10))
	}
	if m.Redelivered || n > 1 {
		set(headerRedelivered, "true")
	}
	if q.body = m.Payload; q.body == nil {
		q.body = []byte("null")
	}
	if m.Stream {
		set(headerStream, m.StreamID)
		set("Content-Type", "application/x-ndjson")
		q.stream = newStreamBody(m)
	}
	return q
}

// oneLine returns a text as a header may have it: escaped as in a URL where it has more than visible characters and
// spaces of ASCII.
func oneLine(s string) string {
	for _, c := range []byte(s) {
		if c < ' ' || c > '~' || c == '%' {
			return p2p.Escape(s)
		}
	}
	return textproto.TrimString(s)
}

// streamBody is a streamed message as the body of a request: a line of JSON for what it begins with, for each piece of
// text, and for its normal end, without which it breaks off.
type streamBody struct {
	m      *client.Message
	ctx    context.Context // of the request
	waits  func()          // called while the sender is waited for
	goesOn func()          // called when there is something for the agent
	rest   []byte
	over   bool

	mu      sync.Mutex // guards the field below
	started bool       // something of the text was read
}

func newStreamBody(m *client.Message) *streamBody {
	return &streamBody{m: m, rest: appendLine(nil, "payload", m.Payload)}
}

// began reports whether something of the text was read, which is not there any more then. A nil body has none.
func (b *streamBody) began() bool {
	if b == nil {
		return false
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.started
}

// begin notes that the text is read, unless the request is over: then nothing of it is lost.
func (b *streamBody) begin() error {
	b.mu.Lock()
	defer b.mu.Unlock()
	if err := b.ctx.Err(); err != nil {
		return err
	}
	b.started = true
	return nil
}

// Read implements io.Reader.
func (b *streamBody) Read(p []byte) (int, error) {
	if len(b.rest) == 0 {
		if b.over {
			return 0, io.EOF
		}
		if err := b.begin(); err != nil {
			return 0, err
		}
		b.waits()
		text, err := b.m.Next(b.ctx)
		b.goesOn()
		switch {
		case err == nil:
			b.rest = appendLine(nil, "text", quoted(text))
		case errors.Is(err, io.EOF):
			b.over, b.rest = true, appendLine(nil, "end", b.m.EndPayload())
		default:
			return 0, err
		}
	}
	n := copy(p, b.rest)
	b.rest = b.rest[n:]
	return n, nil
}

// appendLine appends an object of one member as a line. A line break in a value, which can only be white space, becomes
// a space.
func appendLine(dst []byte, name string, value []byte) []byte {
	if value == nil {
		value = []byte("null")
	}
	dst = append(append(append(dst, `{"`...), name...), `":`...)
	for _, c := range value {
		if c == '\n' || c == '\r' {
			c = ' '
		}
		dst = append(dst, c)
	}
	return append(dst, "}\n"...)
}

// quoted returns a text as JSON.
func quoted(text string) []byte {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	_ = e.Encode(text) // of a string it never fails
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}
