package main

import (
	"context"
	"encoding/json"
	"io"
	"iter"
	"os"
	"strings"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

// printer prints what comes in: for people, raw, or as JSON lines.
type printer struct {
	out         io.Writer
	colour, raw bool

	mu sync.Mutex // guards out, for lines of JSON
}

func newPrinter(cmd *cobra.Command, raw bool) *printer {
	out := cmd.OutOrStdout()
	return &printer{out: out, raw: raw, colour: colourful(out)}
}

// colourful tells whether w is a terminal whose user has not refused colour.
func colourful(w io.Writer) bool {
	f, ok := w.(*os.File)
	if !ok || os.Getenv("NO_COLOR") != "" || os.Getenv("TERM") == "dumb" {
		return false
	}
	info, err := f.Stat()
	return err == nil && info.Mode()&os.ModeCharDevice != 0
}

// name returns who speaks, as people see it.
func (p *printer) name(s string) string {
	if p.colour {
		return "\x1b[36m" + s + "\x1b[0m"
	}
	return s
}

// dim returns what is said by nobody.
func (p *printer) dim(s string) string {
	if p.colour {
		return "\x1b[2m" + s + "\x1b[0m"
	}
	return s
}

func (p *printer) print(s ...string) error {
	_, err := io.WriteString(p.out, strings.Join(s, ""))
	return err
}

// line prints v as one line of JSON.
func (p *printer) line(v any) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	e := json.NewEncoder(p.out)
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// message prints a message, and its text as it comes.
func (p *printer) message(ctx context.Context, m *client.Message) error {
	if !p.raw {
		head := p.name(m.From) + ": "
		if id := m.RequestID(); id != "" && !m.IsReply {
			head = p.name(m.From) + p.dim(" ["+id+"]") + ": "
		}
		if err := p.print(head); err != nil {
			return err
		}
	}
	if !m.Stream {
		return p.print(readable(m.Payload), "\n")
	}
	if text := startText(m.Payload); text != "" && !p.raw {
		if err := p.print(text, "\n"); err != nil {
			return err
		}
	}
	return p.text(chunks(ctx, m.Next))
}

// text prints text as it comes, byte for byte. For people it ends the last line.
func (p *printer) text(parts iter.Seq2[string, error]) error {
	last := ""
	for text, err := range parts {
		if err != nil {
			if !p.raw {
				p.print("\n")
			}
			return err
		}
		if err := p.print(text); err != nil {
			return err
		}
		if text != "" {
			last = text
		}
	}
	if !p.raw && !strings.HasSuffix(last, "\n") {
		return p.print("\n")
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
