package cli

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newListen() *cobra.Command {
	var can []string
	l := &listener{verb: verb{endless: true, idFlag: "ID"}}
	cmd := &cobra.Command{
		Use:   "listen ID",
		Short: "Be an agent: print what it is sent, answer with the lines you type",
		Long: "Be the agent ID and print its messages, the text of streams as it comes. A lost connection is\n" +
			"made again, to any of the edges, and nothing is missing or printed twice; how it stands is told on\n" +
			"stderr. Ctrl-C ends it. Started again, it prints what it had not printed to its end, streams from their\n" +
			"beginning: what may have been printed before is marked (again), and redelivered in JSON.\n\n" +
			"A line that you type (of stdin) answers the agent that waits for an answer, or else has written: where there\n" +
			"are several, begin it with @ID. `@ID TEXT` also speaks to anybody else. It goes on after the end of stdin. With\n" +
			"--raw stdin is not read, and nothing is escaped: that is for files and pipes.",
		Example: "  agora listen alice\n  agora listen bob --skill translate --skill summarize\n  agora listen alice --raw --count 1 > answer.md\n  agora listen alice --json < /dev/null | jq .",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			if l.agent = args[0]; l.agent == "" {
				return exit.WrongUsage(cmd, errors.New("the agent's ID is empty"))
			}
			for _, name := range can {
				l.skills = append(l.skills, agora.Skill{Name: name})
			}
			return l.run(cmd)
		},
		ValidArgsFunction: cobra.NoFileCompletions, // an id that is there has its connection
	}
	l.flags(cmd, 0)
	l.waitFlag(cmd)
	cmd.Flags().StringArrayVar(&can, "skill", nil, "name of a skill that the agent has, by which it is found; may be given several times")
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
	p := newPrinter(cmd, l.json, l.raw)
	l.tell = p.note
	if !l.raw && terminal.Is(cmd.InOrStdin()) {
		l.hint = "; type to answer, @ID TEXT speaks to somebody else"
	}
	return l.do(cmd, func(ctx context.Context, c *client.Client) error {
		talk := &conversation{c: c, tell: p.note}
		var streams, lines sync.WaitGroup
		defer streams.Wait()
		defer lines.Wait()
		shown, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		if !l.raw {
			lines.Go(func() { prompt(ctx, shown, cmd, p.screen, talk) })
		}
		err := l.listen(shown, c, func(m *client.Message) {
			talk.heard(m)
			over := func(err error) { l.over(shown, p, m, cancel, err) }
			if err := p.message(shown, m, headOf(m, ""), &streams, over); err != nil {
				cancel(err)
			}
		})
		if err == nil {
			streams.Wait()
		}
		return l.outcome(cmd, shown, err)
	})
}

// prompt sends what is typed until shown ends. A line that is being sent then is sent nevertheless, unless ctx ends.
func prompt(ctx, shown context.Context, cmd *cobra.Command, s *screen, talk *conversation) {
	err := readLines(shown, cmd, s, func(line string) error { return talk.speak(ctx, line) })
	if err != nil && shown.Err() == nil {
		s.note("stdin is read no more: " + exit.Sentence(err))
	}
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

// over notes how a stream has ended. What could not be printed ends the verb.
func (l *listener) over(ctx context.Context, p *printer, m *client.Message, cancel context.CancelCauseFunc, err error) {
	switch {
	case err == nil || ctx.Err() != nil:
		return
	case exit.Status(err) == exit.Error:
		cancel(err)
		return
	}
	if !l.json && !l.raw {
		p.tell(endless("stream of "+terminal.NameOf(m.From), err))
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.broken = fmt.Errorf("stream from %s: %w", m.From, err)
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
