package cli

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"iter"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

const (
	taskTime     = 10 * time.Minute // that a task has
	taskPatience = 5 * time.Second  // with edges that can't be reached
)

func newExecute() *cobra.Command {
	x := &executer{text: argument{what: "TEXT"}}
	cmd := &cobra.Command{
		Use:   "execute --to ID {TEXT | --file FILE}",
		Short: "Give a task to an agent, and print what it says and what comes of it",
		Long: "Give a task to an agent. What it says is printed as it comes, and what comes of it at the end. Thoughts, logs\n" +
			"and what it asks approval for are told on stderr. This program has no tools: give --allow '' to say so at once.\n" +
			"Ctrl-C cancels the task.",
		Example: "  agora execute --from alice --to bob 'tidy the docs'\n  agora execute --to bob --allow list_files,read_file --file task.txt --json",
		Args:    x.text.last,
		RunE:    x.run,
	}
	x.flags(cmd, taskTime)
	x.from(cmd, "from")
	x.addressee(cmd, &x.to)
	x.text.flags(cmd)
	cmd.Flags().StringSliceVar(&x.allowed, "allow", nil, "tools that the agent may call for it, separated by commas (default: all)")
	return cmd
}

// executer is the verb execute.
type executer struct {
	verb
	text    argument
	to      string
	allowed []string
}

func (x *executer) run(cmd *cobra.Command, args []string) error {
	text, err := x.text.read(cmd, args)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	if cmd.Flags().Changed("allow") && x.allowed == nil {
		x.allowed = []string{}
	}
	p := newPrinter(cmd, x.json, false)
	x.tell = p.note
	return x.doIAT(cmd, taskPatience, func(ctx context.Context, cfg iat.Config) error {
		f := &follower{printer: p, id: rand.Text(), to: x.to, there: make(chan struct{})}
		cfg.OnStatus = func(s iat.Status) { f.listens() }
		c, err := iat.New(cfg)
		if err != nil {
			return err
		}
		defer c.Close()
		beside, stop := context.WithCancel(ctx)
		var following sync.WaitGroup
		following.Go(func() { f.follow(beside, c) })
		defer following.Wait()
		defer stop()
		<-f.there
		task := iat.Execute{ID: f.id, Query: string(text), AllowedTools: x.allowed}
		run, err := insist(ctx, x.tell, func() (*iat.Run, error) { return c.Execute(ctx, x.to, task) })
		if err != nil {
			return err
		}
		defer run.Close()
		return p.task(x.to, run)
	})
}

// task prints what an agent says, and what comes of its task.
func (p *printer) task(to string, run *iat.Run) error {
	if err := p.pieces(to, run); err != nil {
		return err
	}
	result, err := run.Result()
	if err != nil {
		return err
	}
	text := result.Summary
	if text == "" && string(result.Payload) != "{}" {
		text = textOf(result.Payload)
	}
	switch {
	case p.json:
		return p.jsonLine(taskLine{Type: "result", ID: run.ID(), From: to, Payload: result.Payload})
	case text == "":
		return nil
	case terminal.Is(p.out):
		return p.say(head{name: terminal.NameOf(to), more: "(done)"}, text)
	}
	return p.print(text + "\n")
}

// pieces prints the chunks of a run.
func (p *printer) pieces(to string, run *iat.Run) error {
	if p.json {
		for chunk, err := range run.Chunks() {
			if err == nil {
				err = p.jsonLine(taskLine{Type: "chunk", ID: run.ID(), From: to, Payload: chunk.Payload})
			}
			if err != nil {
				return err
			}
		}
		return nil
	}
	next, stop := iter.Pull2(texts(run))
	defer stop()
	text, err, said := next()
	if !said || err != nil { // there is no line to begin, or to end
		return err
	}
	all := func(yield func(string, error) bool) {
		for ; said && yield(text, err); text, err, said = next() {
		}
	}
	if terminal.Is(p.out) {
		return p.begin(head{name: terminal.NameOf(to)}, run.ID()).pour(all)
	}
	return p.verbatim(all)
}

// texts yields the text of chunks, and the JSON of those that have none.
func texts(run *iat.Run) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		for chunk, err := range run.Chunks() {
			text := chunk.Text
			if text == "" && err == nil && string(chunk.Payload) != `{"text":""}` {
				text = string(chunk.Payload)
			}
			if !yield(text, err) {
				return
			}
		}
	}
}

// taskLine is something of a task as a line of JSON.
type taskLine struct {
	Type    string          `json:"type"` // chunk, think, log, approval, result
	ID      string          `json:"id"`   // of the task; of an approval its own
	From    string          `json:"from"`
	Payload json.RawMessage `json:"payload,omitempty"`
}

// follower tells what an agent says beside a task, to whom it is given.
type follower struct {
	*printer
	id, to string
	there  chan struct{} // closed once it listens, or can't
	closed sync.Once
}

func (f *follower) listens() { f.closed.Do(func() { close(f.there) }) }

// follow tells what comes until ctx ends. Nothing of it counts as read. Where another program is the agent, it is that
// which hears it.
func (f *follower) follow(ctx context.Context, c *iat.Client) {
	defer f.listens()
	for e, err := range c.Peek(ctx) {
		if err != nil {
			if ctx.Err() == nil {
				f.note("thoughts and logs are not heard here: " + exit.Sentence(err))
			}
			return
		}
		if e.Header.ParentID != f.id || e.Header.From != f.to {
			continue
		}
		f.heard(ctx, c, e)
	}
}

func (f *follower) heard(ctx context.Context, c *iat.Client, e *iat.Envelope) {
	var said struct {
		Action, Level, Message string
		Thought                string `json:"thought_text"`
	}
	_ = json.Unmarshal(e.Payload, &said) // the cluster has checked it
	switch said.Action {
	case "think":
		f.told("think", e, "thinks: "+said.Thought)
	case "log":
		f.told("log", e, said.Level+": "+said.Message)
	case "require_approval":
		a := iat.Approval{Payload: e.Payload}
		f.told("approval", e, "asks for approval: "+a.What()+"; agora approve "+terminal.Visible(e.Header.MsgID))
	case "call_tool":
		if err := refuseTool(ctx, c, e); err != nil && ctx.Err() == nil {
			f.note("a call of a tool is not answered: " + exit.Sentence(err))
		}
	}
}

// told tells something that the agent says.
func (f *follower) told(what string, e *iat.Envelope, text string) {
	if !f.json {
		f.note(terminal.NameOf(f.to) + " " + text)
		return
	}
	l := taskLine{Type: what, ID: f.id, From: f.to, Payload: e.Payload}
	if what == "approval" {
		l.ID = e.Header.MsgID
	}
	_ = f.jsonLine(l) // should it fail, so will what follows
}

// refuseTool answers a call of a tool: there is none.
func refuseTool(ctx context.Context, c *iat.Client, e *iat.Envelope) error {
	return c.Send(ctx, &iat.Envelope{
		Header:  iat.Header{Type: iat.Response, ParentID: e.Header.MsgID, To: e.Header.From},
		Payload: fmt.Appendf(nil, `{"error":{"code":%q,"message":"this host has no tools"}}`, agora.NotFound),
	})
}
