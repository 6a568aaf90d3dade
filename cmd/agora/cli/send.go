package cli

import (
	"context"
	"errors"
	"io"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
)

// receiptLine tells as a line of JSON that something is stored, or created.
type receiptLine struct {
	Status   string `json:"status"`
	To       string `json:"to,omitempty"`
	Space    string `json:"space,omitempty"`
	ID       string `json:"id,omitempty"` // by which `agora why` finds it
	StreamID string `json:"stream_id,omitempty"`
	EventID  string `json:"event_id,omitempty"`
}

// stored tells, where JSON is asked for, that something is stored.
func (v *verb) stored(cmd *cobra.Command, l receiptLine) error {
	l.Status = "stored"
	return v.done(cmd, l)
}

// done tells, where JSON is asked for, what was done.
func (v *verb) done(cmd *cobra.Command, l receiptLine) error {
	if !v.json {
		return nil
	}
	return newPrinter(cmd, true, false).jsonLine(l)
}

func newSend() *cobra.Command {
	var v verb
	var in input
	var to string
	cmd := &cobra.Command{
		Use:   "send --to ID {TEXT | --file FILE}",
		Short: "Send a message to an agent",
		Long: "Send a message and end when the cluster has stored it. Text becomes the payload {\"text\": TEXT};\n" +
			"- is the text on stdin, unless it stands behind --. With --json it prints the message's id, which `agora why` takes.",
		Example: "  agora send --to bob 'Hello'\n  agora send --from alice --to bob --payload '{\"action\":\"query\"}'",
		Args:    text(0).last,
		RunE: func(cmd *cobra.Command, args []string) error {
			body, err := in.body(cmd, args)
			if err != nil {
				return err
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				id, err := insist(ctx, v.tell, func() (string, error) { return sendOne(ctx, c, to, body) })
				if err != nil {
					return err
				}
				return v.stored(cmd, receiptLine{To: to, ID: id})
			})
		},
	}
	v.flags(cmd, waitAtMost)
	v.from(cmd, "from")
	in.flags(cmd, 0)
	v.addressee(cmd, &to)
	return cmd
}

// sendOne sends a message and returns its id once it is stored.
func sendOne(ctx context.Context, c *client.Client, to string, body []byte) (string, error) {
	sent, err := c.SendAsync(ctx, to, body)
	if err != nil {
		return "", err
	}
	return sent.ID(), sent.Wait(ctx)
}

// addressee defines the flag that says whom a verb speaks to.
func (v *verb) addressee(cmd *cobra.Command, to *string) {
	cmd.Flags().StringVar(to, "to", "", "agent to speak to (required)")
	v.completeFlag(cmd, "to", agentNames)
	cmd.PreRunE = func(cmd *cobra.Command, _ []string) error {
		if *to == "" {
			return exit.WrongUsage(cmd, errors.New("--to is missing"))
		}
		return nil
	}
}

func newStream() *cobra.Command {
	var v verb
	var in input
	var to string
	cmd := &cobra.Command{
		Use:   "stream --to ID < TEXT",
		Short: "Stream stdin to an agent as it comes",
		Long: "Send what is read from stdin, as it is read, as a stream of tokens. It ends when the cluster has\n" +
			"stored the end; a lost connection is made again, and nothing is lost or sent twice. --payload is what\n" +
			"the stream begins with. Ctrl-C cancels the stream.",
		Example: "  agora stream --to bob < README.md\n  llm 'tell a story' | agora stream --from alice --to bob",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			start, err := in.start(cmd)
			if err != nil {
				return err
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				s, err := insist(ctx, v.tell, func() (*client.Stream, error) { return c.OpenStream(ctx, to, orNil(start)) })
				if err == nil {
					err = pour(ctx, cmd, s)
				}
				if err != nil {
					return err
				}
				return v.stored(cmd, receiptLine{To: to, StreamID: s.ID()})
			})
		},
	}
	v.flags(cmd, 0)
	v.from(cmd, "from")
	in.payloadFlags(cmd)
	v.addressee(cmd, &to)
	return cmd
}

// pour writes stdin into a stream as it comes, and ends it.
func pour(ctx context.Context, cmd *cobra.Command, s *client.Stream) error {
	b := make([]byte, pieceSize)
	if _, err := io.CopyBuffer(onlyWriter{s}, newSource(ctx, cmd.InOrStdin()), b); err != nil {
		s.Cancel()
		return err
	}
	return s.Close()
}

// onlyWriter hides every other method, so that io.Copy reads piece by piece.
type onlyWriter struct{ io.Writer }

// orNil keeps an absent payload absent.
func orNil(raw []byte) any {
	if raw == nil {
		return nil
	}
	return raw
}
