package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newAsk() *cobra.Command {
	var v verb
	var in input
	var to string
	var raw bool
	cmd := &cobra.Command{
		Use:   "ask --to ID TEXT|@FILE|-",
		Short: "Send a request to an agent and print its reply",
		Long: "Send a request and print the reply, the text of a streamed one as it comes. The payload gets a\n" +
			"request_id, by which the reply is known.",
		Example: "  agora ask --to bob 'What is the time?'\n  agora ask --to bob --payload '{\"action\":\"query\"}' --json",
		Args:    cobra.MaximumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := in.body(cmd, args)
			if err != nil {
				return err
			}
			v.name()
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				m, err := c.Request(ctx, to, body)
				if err != nil {
					return err
				}
				return v.answer(ctx, newPrinter(cmd, raw), m)
			})
		},
	}
	v.flags(cmd, 4*waitAtMost)
	v.from(cmd, "from")
	in.flags(cmd)
	addressee(cmd, &to)
	cmd.Flags().BoolVar(&raw, "raw", false, "print the text of a streamed reply byte for byte, without a newline after it")
	return cmd
}

// answer prints a reply.
func (v *verb) answer(ctx context.Context, p *printer, m *client.Message) error {
	switch {
	case v.json:
		if err := p.messageHead(m); err != nil || !m.Stream {
			return err
		}
		return p.messageParts(ctx, m)
	case m.Stream:
		return p.text(chunks(ctx, m.Next))
	}
	return p.print(readable(m.Payload), "\n")
}

func newReply() *cobra.Command {
	r := &replier{}
	cmd := &cobra.Command{
		Use:   "reply --to ID --request-id ID TEXT|@FILE|-",
		Short: "Reply to a request",
		Long: "Reply to a request that `agora listen` has shown, and end when the cluster has stored the reply. The\n" +
			"request_id becomes part of the payload. With --stream stdin is the reply, sent as it comes.",
		Example: "  agora reply --from bob --to alice --request-id r-1 'Noon'\n  llm 'the time' | agora reply --from bob --to alice --request-id r-1 --stream",
		Args:    cobra.MaximumNArgs(1),
		RunE:    r.run,
	}
	r.flags(cmd, 0)
	r.from(cmd, "from")
	r.in.flags(cmd)
	addressee(cmd, &r.to)
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
	r.name()
	return r.do(cmd, func(ctx context.Context, c *client.Client) error {
		if r.stream {
			err = replyStdin(ctx, cmd, c, r.to, r.id, orNil(body))
		} else {
			err = c.Reply(ctx, r.to, r.id, body)
		}
		if err != nil {
			return err
		}
		return r.stored(cmd, receiptLine{To: r.to})
	})
}

func replyStdin(ctx context.Context, cmd *cobra.Command, c *client.Client, to, id string, start any) error {
	s, err := c.ReplyStream(ctx, to, id, start)
	if err != nil {
		return err
	}
	return pour(ctx, cmd, s)
}
