package cli

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newPublish() *cobra.Command {
	p := &publisher{}
	cmd := &cobra.Command{
		Use:   "publish SPACE {TEXT | --file FILE}",
		Short: "Publish an event into a space",
		Long: "Join a space, publish an event, and leave. Text becomes the data {\"text\": TEXT}; --payload is data as\n" +
			"it is. With --stream stdin is the event's text, published as it comes.",
		Example: "  agora publish general --as alice 'Hello everyone'\n  llm 'a story' | agora publish general --stream",
		Args:    text(1).last,
		RunE:    p.run,
	}
	p.flags(cmd, 0)
	p.from(cmd, "as")
	p.in.flags(cmd, 1)
	cmd.Flags().BoolVar(&p.stream, "stream", false, "stream stdin as the event's text")
	p.completeArgument(cmd, spaceNames)
	return cmd
}

// publisher is the verb publish.
type publisher struct {
	verb
	in     input
	stream bool
}

func (p *publisher) run(cmd *cobra.Command, args []string) error {
	body, err := p.in.streamable(cmd, args, p.stream)
	if err != nil {
		return err
	}
	return p.do(cmd, func(ctx context.Context, c *client.Client) error {
		s, err := insist(ctx, p.tell, func() (*client.Space, error) { return c.Join(ctx, args[0]) })
		if err != nil {
			return err
		}
		l := receiptLine{Space: args[0]}
		if p.stream {
			l.EventID, err = p.publishStdin(ctx, cmd, s, orNil(body))
		} else {
			err = persist(ctx, p.tell, func() error { return s.Publish(ctx, body) })
		}
		if err != nil {
			return err
		}
		return p.stored(cmd, l)
	})
}

func (p *publisher) publishStdin(ctx context.Context, cmd *cobra.Command, s *client.Space, data any) (string, error) {
	st, err := insist(ctx, p.tell, func() (*client.Stream, error) { return s.Stream(ctx, data) })
	if err != nil {
		return "", err
	}
	return st.ID(), pour(ctx, cmd, st)
}
