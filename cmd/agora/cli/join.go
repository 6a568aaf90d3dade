package cli

import (
	"context"
	"errors"
	"sync"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newJoin() *cobra.Command {
	j := &joiner{verb: verb{endless: true}}
	cmd := &cobra.Command{
		Use:   "join SPACE",
		Short: "Join a space: print its events, publish the lines you type",
		Long: "Join a space and print what happens there: events, and who comes and goes; also what the agent is sent\n" +
			"meanwhile, marked (to you). Each line of stdin is published as {\"text\": LINE}. It goes on after the end of\n" +
			"stdin; how it stands is told on stderr. Ctrl-C ends it.",
		Example: "  agora join general --as alice\n  agora join general --json --history 10 < /dev/null",
		Args:    cobra.ExactArgs(1),
		RunE:    func(cmd *cobra.Command, args []string) error { return j.run(cmd, args[0]) },
	}
	j.flags(cmd, 0)
	j.waitFlag(cmd)
	j.from(cmd, "as")
	cmd.Flags().IntVar(&j.history, "history", 0, "begin with this many events of the past")
	cmd.Flags().IntVar(&j.count, "count", 0, "end after this many events of others or oneself; 0 for never")
	j.completeArgument(cmd, spaceNames)
	return cmd
}

// joiner is the verb join.
type joiner struct {
	verb
	history, count int
}

func (j *joiner) run(cmd *cobra.Command, space string) error {
	p := newPrinter(cmd, j.json, false)
	j.tell = p.note
	if terminal.Is(cmd.InOrStdin()) {
		j.hint = "; what you type is published in " + space
	}
	return j.do(cmd, func(ctx context.Context, c *client.Client) error {
		s, err := insist(ctx, j.tell, func() (*client.Space, error) { return c.Join(ctx, space, j.where()...) })
		if err != nil {
			return err
		}
		var streams, beside sync.WaitGroup
		defer streams.Wait()
		defer beside.Wait()
		ctx, cancel := context.WithCancelCause(ctx)
		defer cancel(nil)
		fail := func(err error) {
			if err != nil && ctx.Err() == nil {
				cancel(err)
			}
		}
		beside.Go(func() { fail(j.publishLines(ctx, cmd, p, s)) })
		beside.Go(func() { fail(showMail(ctx, p, c, &beside, fail)) })
		if err = j.show(ctx, p, s, &streams, fail); err == nil {
			streams.Wait()
		}
		err = cmpErr(context.Cause(ctx), err)
		if cmd.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) && j.count == 0 {
			return nil
		}
		return err
	})
}

// where says with what of the past the space begins.
func (j *joiner) where() []client.JoinOptions {
	if j.history <= 0 {
		return nil
	}
	return []client.JoinOptions{{History: j.history}}
}

// show prints events until there were as many as asked for.
func (j *joiner) show(ctx context.Context, p *printer, s *client.Space, streams *sync.WaitGroup, fail func(error)) error {
	n := 0
	for e, err := range s.Events(ctx) {
		if err == nil {
			err = p.event(ctx, e, j.history == 0, streams, fail)
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

// showMail prints what other agents send to this one, which would else count as read or wait for nobody.
func showMail(ctx context.Context, p *printer, c *client.Client, streams *sync.WaitGroup, fail func(error)) error {
	for m, err := range c.Messages(ctx) {
		if err == nil {
			err = p.message(ctx, m, headOf(m, "(to you)"), streams, func(err error) {
				fail(p.ended(ctx, "stream of "+terminal.NameOf(m.From), err))
			})
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// event prints an event; again says that one which is redelivered is no part of a history that was asked for. The parts
// of one follow beside it, in streams, as they come.
func (p *printer) event(ctx context.Context, e *client.Event, again bool, streams *sync.WaitGroup, fail func(error)) error {
	over := func(err error) { fail(p.ended(ctx, "event of "+terminal.NameOf(e.From), err)) }
	h := head{name: terminal.NameOf(e.From)}
	if again && e.Redelivered {
		h.more = shownAgain
	}
	switch {
	case p.json:
		if err := p.eventHead(e); err != nil || !e.Stream {
			return err
		}
		streams.Go(func() { over(p.eventParts(ctx, e)) })
	case e.Roster != nil && e.Roster.Joined != "":
		return p.tell(terminal.NameOf(e.Roster.Joined) + " joined")
	case e.Roster != nil:
		return p.tell(terminal.NameOf(e.Roster.Left) + " left")
	case !e.Stream:
		return p.say(h, readable(e.Data))
	default:
		v := p.begin(h, e.ID)
		streams.Go(func() { over(v.pour(chunks(ctx, e.Next))) })
	}
	return nil
}

// ended tells of something in parts that has no normal end, which is no failure, and returns other errors.
func (p *printer) ended(ctx context.Context, what string, err error) error {
	if err == nil || ctx.Err() != nil || exit.Status(err) == exit.Error {
		return err
	}
	if p.json {
		return nil // a line has said so
	}
	return p.tell(endless(what, err))
}

// publishLines publishes line after line of stdin.
func (j *joiner) publishLines(ctx context.Context, cmd *cobra.Command, p *printer, s *client.Space) error {
	return readLines(ctx, cmd, p.screen, func(line string) error {
		return persist(ctx, j.tell, func() error { return s.PublishText(ctx, line) })
	})
}
