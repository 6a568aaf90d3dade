package cli

import (
	"context"
	"errors"
	"iter"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/internal/pause"
)

func newAsk() *cobra.Command {
	var v verb
	var in input
	var to string
	var raw bool
	cmd := &cobra.Command{
		Use:   "ask --to ID {TEXT | --file FILE}",
		Short: "Send a request to an agent and print its reply",
		Long: "Send a request and print the reply, the text of a streamed one as it comes. The payload gets a\n" +
			"request_id, by which the reply is known. What else waits for the agent stays in its mailbox. On a terminal the\n" +
			"reply is shown as `agora listen` shows it; elsewhere its text is printed as it is. Interrupted, it gives the request up,\n" +
			"and the agent that was asked is told.",
		Example: "  agora ask --to bob 'What is the time?'\n  agora ask --to bob --payload '{\"action\":\"query\"}' --json",
		Args:    text(0).last,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := in.body(cmd, args)
			if err != nil {
				return err
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				heard := v.tellSilence(ctx, c, to)
				m, err := insist(ctx, v.tell, func() (*client.Message, error) { return c.Request(ctx, to, body) })
				heard()
				if err != nil {
					return err
				}
				return newPrinter(cmd, v.json, raw).replied(ctx, m)
			})
		},
	}
	v.flags(cmd, 4*waitAtMost)
	v.from(cmd, "from")
	in.flags(cmd, 0)
	v.addressee(cmd, &to)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the text of a streamed reply byte for byte, without a newline after it")
	return cmd
}

// silenceTime is how long an agent that was asked may say nothing until the user learns how it stands.
const silenceTime = 10 * time.Second

// tellSilence tells the user, from time to time, why nothing may have come from an agent that was asked, until heard is
// called.
func (v *verb) tellSilence(ctx context.Context, c *client.Client, of string) (heard func()) {
	ctx, cancel := context.WithCancel(ctx)
	var looking sync.WaitGroup
	looking.Go(func() {
		for told := ""; pause.For(ctx, silenceTime); {
			_, err := c.AgentCard(ctx, of)
			if why := silence(of, err); why != told && ctx.Err() == nil {
				v.tell(why)
				told = why
			}
		}
	})
	return func() {
		cancel()
		looking.Wait()
	}
}

// silence says how an agent stands that has not answered: err is what the directory says of it.
func silence(of string, err error) string {
	if e, ok := errors.AsType[*agora.Error](err); ok && e.Code == agora.AgentNotFound {
		return terminal.NameOf(of) + " is not connected: the request waits in its mailbox"
	}
	return terminal.NameOf(of) + " has not answered yet"
}

// replied prints a reply. One that says an error in place of an answer is no answer: with JSON it is a line
// nevertheless.
func (p *printer) replied(ctx context.Context, m *client.Message) error {
	err := said(m)
	if err == nil || p.json {
		if failed := p.answer(ctx, m); failed != nil {
			return failed
		}
	}
	if m.Stream {
		err = said(m) // its end was read
	}
	return err
}

// said returns the error that a reply says, and who does.
func said(m *client.Message) error {
	e, ok := errors.AsType[*agora.Error](m.Err())
	if !ok {
		return nil
	}
	return &agora.Error{Code: e.Code, Message: terminal.NameOf(m.From) + " answered: " + e.Message}
}

// answer prints a reply: on a terminal as a message, elsewhere its text as it is, with an end of line where it has
// none.
func (p *printer) answer(ctx context.Context, m *client.Message) error {
	switch {
	case p.json:
		if err := p.messageHead(m); err != nil || !m.Stream {
			return err
		}
		return p.messageParts(ctx, m)
	case terminal.Is(p.out) && !p.raw:
		var stream sync.WaitGroup
		var broken error
		err := p.message(ctx, m, headOf(m, ""), &stream, func(err error) { broken = err })
		stream.Wait()
		return cmpErr(err, broken)
	case !m.Stream:
		return p.print(readable(m.Payload) + "\n")
	}
	return p.verbatim(words(ctx, m))
}

// verbatim prints text as it comes, byte for byte. Unless it is to be raw it ends the last line.
func (p *printer) verbatim(parts iter.Seq2[string, error]) error {
	ended := false
	for text, err := range parts {
		if err == nil {
			err = p.print(text)
		}
		if err != nil {
			return err
		}
		ended = text == "" && ended || strings.HasSuffix(text, "\n")
	}
	if p.raw || ended {
		return nil
	}
	return p.print("\n")
}

func newReply() *cobra.Command {
	r := &replier{}
	cmd := &cobra.Command{
		Use:   "reply --to ID --request-id ID {TEXT | --file FILE}",
		Short: "Reply to a request",
		Long: "Reply to a request that `agora listen` has shown, and end when the cluster has stored the reply. The\n" +
			"request_id becomes part of the payload. With --stream stdin is the reply, sent as it comes.",
		Example: "  agora reply --from bob --to alice --request-id r-1 'Noon'\n  llm 'the time' | agora reply --from bob --to alice --request-id r-1 --stream",
		Args:    text(0).last,
		RunE:    r.run,
	}
	r.flags(cmd, 0)
	r.from(cmd, "from")
	r.in.flags(cmd, 0)
	r.addressee(cmd, &r.to)
	cmd.Flags().StringVar(&r.id, "request-id", "", "request_id of the request")
	cmd.Flags().BoolVar(&r.stream, "stream", false, "stream stdin as the reply")
	return cmd
}

// replier is the verb reply.
type replier struct {
	verb
	in     input
	to, id string
	stream bool
}

func (r *replier) run(cmd *cobra.Command, args []string) error {
	body, err := r.in.streamable(cmd, args, r.stream)
	if err != nil {
		return err
	}
	return r.do(cmd, func(ctx context.Context, c *client.Client) error {
		if r.stream {
			err = r.replyStdin(ctx, cmd, c, orNil(body))
		} else {
			err = persist(ctx, r.tell, func() error { return c.Reply(ctx, r.to, r.id, body) })
		}
		if err != nil {
			return err
		}
		return r.stored(cmd, receiptLine{To: r.to})
	})
}

func (r *replier) replyStdin(ctx context.Context, cmd *cobra.Command, c *client.Client, start any) error {
	s, err := insist(ctx, r.tell, func() (*client.Stream, error) { return c.ReplyStream(ctx, r.to, r.id, start) })
	if err != nil {
		return err
	}
	return pour(ctx, cmd, s)
}
