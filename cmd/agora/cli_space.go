package main

import (
	"bufio"
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newJoin() *cobra.Command {
	j := &joiner{verb: verb{endless: true}}
	cmd := &cobra.Command{
		Use:   "join SPACE",
		Short: "Join a space: print its events, publish lines from stdin",
		Long: "Join a space and print what happens there: events, and who comes and goes. Each line of stdin is\n" +
			"published as {\"text\": LINE}. It goes on after the end of stdin; Ctrl-C ends it.",
		Example: "  agora join general --as alice\n  agora join general --json --history 10 < /dev/null",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			j.name()
			return j.run(cmd, args[0])
		},
	}
	j.flags(cmd, 0)
	j.from(cmd, "as")
	cmd.Flags().IntVar(&j.history, "history", 0, "begin with this many events of the past")
	cmd.Flags().IntVar(&j.count, "count", 0, "end after this many events of others or oneself; 0 for never")
	return cmd
}

// joiner is the verb join.
type joiner struct {
	verb
	history, count int
}

func (j *joiner) run(cmd *cobra.Command, space string) error {
	p := newPrinter(cmd, false)
	return j.do(cmd, func(ctx context.Context, c *client.Client) error {
		var opts []client.JoinOptions
		if j.history > 0 {
			opts = append(opts, client.JoinOptions{History: j.history})
		}
		s, err := c.Join(ctx, space, opts...)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(ctx)
		var lines sync.WaitGroup
		lines.Go(func() {
			if err := publishLines(ctx, cmd, s); err != nil {
				cancel(err)
			}
		})
		err = j.show(ctx, p, s)
		if cause := context.Cause(ctx); cause != nil && err != nil {
			err = cause
		}
		cancel(nil)
		lines.Wait()
		if cmd.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) && j.count == 0 {
			return nil
		}
		return err
	})
}

// show prints events until there were as many as asked for.
func (j *joiner) show(ctx context.Context, p *printer, s *client.Space) error {
	n := 0
	for e, err := range s.Events(ctx) {
		if err == nil {
			err = j.event(ctx, p, e)
		}
		if err != nil {
			return err
		}
		if e.Roster == nil {
			n++
		}
		if n == j.count && n > 0 {
			return nil
		}
	}
	return nil
}

// event prints an event. A cancelled one is no error.
func (j *joiner) event(ctx context.Context, p *printer, e *client.Event) error {
	if j.json {
		if err := p.eventHead(e); err != nil || !e.Stream {
			return err
		}
		return broken(ctx, p.eventParts(ctx, e))
	}
	switch {
	case e.Roster != nil && e.Roster.Joined != "":
		return p.print(p.dim("* "+e.Roster.Joined+" joined"), "\n")
	case e.Roster != nil:
		return p.print(p.dim("* "+e.Roster.Left+" left"), "\n")
	case !e.Stream:
		return p.print(p.name(e.From), ": ", readable(e.Data), "\n")
	}
	if err := p.print(p.name(e.From), ": "); err != nil {
		return err
	}
	err := p.text(chunks(ctx, e.Next))
	if err != nil && broken(ctx, err) == nil {
		return p.print(p.dim("* the event was cancelled"), "\n")
	}
	return err
}

// broken returns an error but for that of an event that had no normal end.
func broken(ctx context.Context, err error) error {
	if err != nil && ctx.Err() == nil && exitStatus(err) == exitAborted {
		return nil
	}
	return err
}

// publishLines publishes line after line of stdin.
func publishLines(ctx context.Context, cmd *cobra.Command, s *client.Space) error {
	lines := bufio.NewScanner(newSource(ctx, cmd.InOrStdin()))
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		if lines.Text() == "" {
			continue
		}
		if err := s.PublishText(ctx, lines.Text()); err != nil {
			return err
		}
	}
	return lines.Err()
}

func newPublish() *cobra.Command {
	p := &publisher{}
	cmd := &cobra.Command{
		Use:   "publish SPACE TEXT|@FILE|-",
		Short: "Publish an event into a space",
		Long: "Join a space, publish an event, and leave. Text becomes the data {\"text\": TEXT}; --payload is data as\n" +
			"it is. With --stream stdin is the event's text, published as it comes.",
		Example: "  agora publish general --as alice 'Hello everyone'\n  llm 'a story' | agora publish general --stream",
		Args:    cobra.RangeArgs(1, 2),
		RunE:    p.run,
	}
	p.flags(cmd, 0)
	p.from(cmd, "as")
	p.in.flags(cmd)
	cmd.Flags().BoolVar(&p.stream, "stream", false, "stream stdin as the event's text")
	return cmd
}

// publisher is the verb publish.
type publisher struct {
	verb
	in     input
	stream bool
}

func (p *publisher) run(cmd *cobra.Command, args []string) error {
	body, err := p.in.streamable(cmd, args[1:], p.stream)
	if err != nil {
		return err
	}
	p.name()
	return p.do(cmd, func(ctx context.Context, c *client.Client) error {
		s, err := c.Join(ctx, args[0])
		if err != nil {
			return err
		}
		l := receiptLine{Space: args[0]}
		if p.stream {
			l.EventID, err = publishStdin(ctx, cmd, s, orNil(body))
		} else {
			err = s.Publish(ctx, body)
		}
		if err != nil {
			return err
		}
		return p.stored(cmd, l)
	})
}

func publishStdin(ctx context.Context, cmd *cobra.Command, s *client.Space, data any) (string, error) {
	st, err := s.Stream(ctx, data)
	if err != nil {
		return "", err
	}
	return st.ID(), pour(ctx, cmd, st)
}
