package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newListen() *cobra.Command {
	l := &listener{verb: verb{endless: true}}
	cmd := &cobra.Command{
		Use:   "listen ID",
		Short: "Be an agent and print what it is sent",
		Long: "Be the agent ID and print its messages, the text of streams as it comes. A lost connection is\n" +
			"made again, to any of the edges, and nothing is missing or printed twice. Ctrl-C ends it.",
		Example: "  agora listen alice\n  agora listen alice --raw --count 1 > answer.md\n  agora listen alice --json | jq .",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			l.agent = args[0]
			return l.run(cmd)
		},
	}
	l.flags(cmd, 0)
	cmd.Flags().BoolVar(&l.raw, "raw", false, "print text alone, that of streams byte for byte")
	cmd.Flags().IntVar(&l.count, "count", 0, "end after this many messages; 0 for never")
	return cmd
}

// listener is the verb listen.
type listener struct {
	verb
	raw   bool
	count int

	mu     sync.Mutex // guards broken
	broken error      // of the last stream that had no normal end
}

func (l *listener) run(cmd *cobra.Command) error {
	p := newPrinter(cmd, l.raw)
	return l.do(cmd, func(ctx context.Context, c *client.Client) error {
		var streams sync.WaitGroup // lines of JSON of streams may mix
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		defer streams.Wait()
		err := l.listen(ctx, c, func(m *client.Message) {
			if err := l.print(ctx, p, m, &streams); err != nil {
				cancel(err)
			}
		})
		if err == nil {
			streams.Wait()
		}
		return l.outcome(cmd, ctx, err)
	})
}

// listen hands messages to show until there were as many as asked for.
func (l *listener) listen(ctx context.Context, c *client.Client, show func(*client.Message)) error {
	n := 0
	for m, err := range c.Messages(ctx) {
		if err != nil {
			return err
		}
		show(m)
		if n++; n == l.count {
			return context.Cause(ctx)
		}
	}
	return nil
}

// print prints a message. An error is one of printing; a broken stream is noted.
func (l *listener) print(ctx context.Context, p *printer, m *client.Message, streams *sync.WaitGroup) error {
	if !l.json {
		return l.note(m, p.message(ctx, m))
	}
	if err := p.messageHead(m); err != nil {
		return err
	}
	if m.Stream {
		streams.Go(func() { l.note(m, p.messageParts(ctx, m)) })
	}
	return nil
}

// note keeps in mind that a stream broke, and returns other errors.
func (l *listener) note(m *client.Message, err error) error {
	status := exitStatus(err)
	if err == nil || !m.Stream || status == exitError {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = fmt.Errorf("stream from %s: %w", m.From, err)
	return nil
}

// outcome tells a normal end from others: the user's signal, or the time when
// no number of messages was asked for.
func (l *listener) outcome(cmd *cobra.Command, ctx context.Context, err error) error {
	if cause := context.Cause(ctx); err != nil && cause != nil {
		err = cause
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	switch {
	case cmd.Context().Err() != nil:
		return nil
	case errors.Is(err, context.DeadlineExceeded) && l.count == 0:
		return nil
	case err == nil:
		return l.broken
	}
	return err
}

// waitAtMost is how long verbs that end by themselves wait.
const waitAtMost = 30 * time.Second
