package cli

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"iter"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// printer prints what comes in: for people on a screen, raw, or as JSON lines.
type printer struct {
	*screen
	json, raw bool

	lines sync.Mutex // held while a line of JSON is written
}

func newPrinter(cmd *cobra.Command, asJSON, raw bool) *printer {
	return &printer{screen: newScreen(cmd.OutOrStdout(), cmd.ErrOrStderr()), json: asJSON, raw: raw}
}

// jsonLine prints v as one line of JSON, in which nothing acts on a terminal.
func (p *printer) jsonLine(v any) error {
	var b strings.Builder
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	p.lines.Lock()
	defer p.lines.Unlock()
	_, err := io.WriteString(p.out, harmlessJSON(b.String()))
	return err
}

// harmlessJSON escapes what acts on a terminal in a line of JSON, where it can only stand in strings.
func harmlessJSON(line string) string {
	if !strings.ContainsFunc(line, func(r rune) bool { return r != '\n' && terminal.Harmful(r) }) {
		return line
	}
	var b strings.Builder
	for _, r := range line {
		if r != '\n' && terminal.Harmful(r) {
			fmt.Fprintf(&b, `\u%04x`, r)
		} else {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// message prints a message. The parts of a stream follow beside it, in streams, as they come; what became of them is
// told to over.
func (p *printer) message(ctx context.Context, m *client.Message, h head, streams *sync.WaitGroup, over func(error)) error {
	switch {
	case p.raw:
		return p.rawMessage(ctx, m, over)
	case p.json:
		if err := p.messageHead(m); err != nil || !m.Stream {
			return err
		}
		streams.Go(func() { over(p.messageParts(ctx, m)) })
		return nil
	case !m.Stream:
		return p.say(h, readable(m.Payload))
	}
	v := p.begin(h, m.StreamID)
	if text := startText(m.Payload); text != "" {
		v.write(text + "\n") // should it fail, so will what follows
	}
	streams.Go(func() { over(v.pour(words(ctx, m))) })
	return nil
}

// headOf is what the lines of a message begin with.
func headOf(m *client.Message, more string) head {
	h := head{name: terminal.NameOf(m.From), more: more}
	if id := m.RequestID(); id != "" && !m.IsReply {
		h.more = strings.TrimSpace(h.more + " [" + terminal.Visible(id) + "]")
	}
	if m.Redelivered {
		h.more = strings.TrimSpace(h.more + " " + shownAgain)
	}
	return h
}

// shownAgain marks what an earlier run of this program may have shown.
const shownAgain = "(again)"

// rawMessage prints the text of a message alone: that of a stream byte for byte, to its end.
func (p *printer) rawMessage(ctx context.Context, m *client.Message, over func(error)) error {
	if !m.Stream {
		return p.print(readable(m.Payload) + "\n")
	}
	for text, err := range words(ctx, m) {
		if err != nil {
			over(err)
			return nil
		}
		if err := p.print(text); err != nil {
			return err
		}
	}
	over(nil)
	return nil
}

// print writes what is not for people alone.
func (p *printer) print(text string) error {
	_, err := io.WriteString(p.out, text)
	return err
}

// pour shows a stream to its end, and returns why that was not a normal one.
func (v *voice) pour(parts iter.Seq2[string, error]) (err error) {
	defer func() { err = cmpErr(err, v.end()) }()
	for text, err := range parts {
		if err == nil {
			err = v.write(text)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// chunks yields what next returns until ctx ends.
func chunks(ctx context.Context, next func(context.Context) (string, error)) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for {
			text, err := next(ctx)
			if err == io.EOF || !yield(text, err) || err != nil {
				return
			}
		}
	}
}

// words yields the text of a streamed message, and behind it what its end says, as that of agents of other dialects
// may: a string continues with the text, anything else has a line of its own.
func words(ctx context.Context, m *client.Message) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		within := false // a line
		for text, err := range chunks(ctx, m.Next) {
			if !yield(text, err) || err != nil {
				return
			}
			within = text == "" && within || text != "" && !strings.HasSuffix(text, "\n")
		}
		end := m.EndPayload()
		if end == nil {
			return
		}
		var text string
		if json.Unmarshal(end, &text) != nil {
			if text = readable(end); within {
				text = "\n" + text
			}
		}
		yield(text, nil)
	}
}

// endless tells people that something in parts has no normal end.
func endless(what string, err error) string {
	return "the " + what + " has no end: " + exit.Sentence(err)
}

// readable returns the text of a payload that has little else, and any other payload as it is.
func readable(payload json.RawMessage) string {
	if text, ok := onlyText(payload); ok {
		return text
	}
	return string(payload)
}

// startText is readable for the payload that a stream begins with: "" when that says nothing.
func startText(payload json.RawMessage) string {
	var members map[string]json.RawMessage
	if json.Unmarshal(payload, &members) == nil {
		delete(members, "request_id")
		if len(members) == 0 {
			return ""
		}
	}
	return readable(payload)
}

// onlyText returns the "text" of an object that has nothing else but what Agora adds.
func onlyText(object json.RawMessage) (text string, ok bool) {
	var members map[string]json.RawMessage
	if json.Unmarshal(object, &members) != nil {
		return "", false
	}
	for _, known := range []string{"request_id", "from", "timestamp"} {
		delete(members, known)
	}
	raw, ok := members["text"]
	if !ok || len(members) != 1 || json.Unmarshal(raw, &text) != nil {
		return "", false
	}
	return text, true
}
