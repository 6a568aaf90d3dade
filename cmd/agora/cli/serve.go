package cli

import (
	"cmp"
	"context"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newServe() *cobra.Command {
	var can []string
	s := &server{verb: verb{endless: true, idFlag: "ID", wait: true}}
	cmd := &cobra.Command{
		Use:   "serve ID -- COMMAND…",
		Short: "Be an agent in shell: answer each request by what a command writes",
		Long: "Be the agent ID, and run COMMAND for each message. It reads the message on stdin (its text, that of a stream as it\n" +
			"comes, or its JSON), and what it writes on stdout is the answer, sent as it comes; stderr stays here. A message is\n" +
			"acknowledged once COMMAND has ended with 0: where this program ends before, it comes again. Another status is an\n" +
			"error to the caller. A caller that gives up has COMMAND killed. Of messages that want no answer the output is\n" +
			"printed here. AGENT_ID, REQUEST_FROM, REQUEST_ID and REDELIVERED (1 where the message may have come before) are in\n" +
			"its environment. What a message says is no part of the command line.",
		Example: "  agora serve upper -- tr a-z A-Z\n  agora serve poet --skill poetry --concurrency 4 -- llm -s 'answer in verse'",
		Args:    cobra.MinimumNArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			if cmd.ArgsLenAtDash() != 1 {
				return exit.WrongUsage(cmd, errors.New("COMMAND stands behind --"))
			}
			if s.concurrency < 1 {
				return exit.WrongUsage(cmd, errors.New("--concurrency must be at least 1"))
			}
			for _, name := range can {
				s.skills = append(s.skills, agora.Skill{Name: name})
			}
			s.agent, s.command = args[0], args[1:]
			return s.run(cmd)
		},
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	s.flags(cmd, 0)
	f := cmd.Flags()
	f.IntVar(&s.concurrency, "concurrency", 1, "messages that are answered at a time")
	f.StringArrayVar(&can, "skill", nil, "name of a skill that the agent has, by which it is found; may be given several times")
	return cmd
}

// server is the verb serve.
type server struct {
	verb
	command     []string
	concurrency int
}

// endTime is how long a command may take to end once it was told to.
const endTime = 5 * time.Second

func (s *server) run(cmd *cobra.Command) error {
	if _, err := exec.LookPath(s.command[0]); err != nil {
		return exit.WrongUsage(cmd, err)
	}
	p := newPrinter(cmd, s.json, true)
	s.tell = p.note
	return s.do(cmd, func(ctx context.Context, c *client.Client) error {
		var working sync.WaitGroup
		defer working.Wait()
		free := make(chan struct{}, s.concurrency)
		for {
			select {
			case free <- struct{}{}:
			case <-ctx.Done():
				return s.ended(cmd, ctx.Err())
			}
			m, err := c.Receive(ctx)
			if err != nil {
				return s.ended(cmd, err)
			}
			working.Go(func() {
				defer func() { <-free }()
				s.serve(ctx, cmd, p, m)
			})
		}
	})
}

// ended tells the user's own end from others.
func (s *server) ended(cmd *cobra.Command, err error) error {
	if cmd.Context().Err() != nil || errors.Is(err, context.DeadlineExceeded) {
		return nil
	}
	return err
}

// serve answers a message. One whose answer could not be given to its end, as this program ends, is not acknowledged.
func (s *server) serve(ctx context.Context, cmd *cobra.Command, p *printer, m *client.Message) {
	life, free := m.Context(ctx)
	defer free()
	out := &output{ctx: life, m: m, printer: p}
	err := s.execute(life, cmd, m, out)
	gaveUp := errors.Is(context.Cause(life), client.ErrCancelled) || life.Err() != nil && ctx.Err() == nil
	if ctx.Err() == nil && !gaveUp {
		err = cmp.Or(out.end(err), err)
	}
	if ctx.Err() != nil {
		out.cancel()
		return // it comes again
	}
	switch {
	case gaveUp:
		out.cancel()
		s.tell(terminal.NameOf(m.From) + " waits no longer")
	case err != nil:
		s.tell("the message of " + terminal.NameOf(m.From) + " failed: " + exit.Sentence(err))
	}
	m.Close()
	m.Ack()
}

// execute runs the command for a message, and returns why it has not ended with 0.
func (s *server) execute(ctx context.Context, cmd *cobra.Command, m *client.Message, out io.Writer) error {
	run := exec.CommandContext(ctx, s.command[0], s.command[1:]...)
	run.WaitDelay = endTime
	run.Stdout, run.Stderr = out, cmd.ErrOrStderr()
	run.Stdin = strings.NewReader(readable(m.Payload) + "\n")
	if m.Stream {
		run.Stdin = nil
	}
	run.Env = append(os.Environ(), "AGENT_ID="+s.agent, "REQUEST_FROM="+m.From, "REQUEST_ID="+m.RequestID(), "REDELIVERED=")
	if m.Redelivered {
		run.Env[len(run.Env)-1] += "1"
	}
	if !m.Stream {
		return failed(run.Run())
	}
	in, err := run.StdinPipe()
	if err != nil {
		return err
	}
	if err := run.Start(); err != nil {
		return failed(err)
	}
	var broken error
	var feeding sync.WaitGroup
	feeding.Go(func() { broken = feed(ctx, in, m) })
	err = failed(run.Wait())
	if ctx.Err() == nil {
		m.Close() // of a stream that the command has not read to its end nothing more is wanted
	}
	feeding.Wait()
	return cmp.Or(err, broken)
}

// feed writes a streamed message to a command as it comes. What the command does not read is no failure.
func feed(ctx context.Context, in io.WriteCloser, m *client.Message) error {
	defer in.Close()
	if text := startText(m.Payload); text != "" {
		if _, err := io.WriteString(in, text+"\n"); err != nil {
			return nil
		}
	}
	for text, err := range words(ctx, m) {
		if err != nil {
			if errors.Is(err, client.ErrCancelled) {
				return nil // by ourselves, or by a caller that gives up
			}
			return err
		}
		if _, err := io.WriteString(in, text); err != nil {
			return nil
		}
	}
	return nil
}
