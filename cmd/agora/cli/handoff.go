package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"iter"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newFind() *cobra.Command {
	var v verb
	var q client.Query
	cmd := &cobra.Command{
		Use:   "find --skill NAME | GOAL…",
		Short: "Find the agents that can do something, the best first",
		Long: "Find the agents that have a skill or tool of a name, or that fit best what is to be done, the best first.\n" +
			"`agora card` shows what one of them says of itself, `agora handoff` has it do something.",
		Example: "  agora find --skill translate\n  agora find translate a contract into French --limit 3 --json",
		RunE: func(cmd *cobra.Command, args []string) error {
			q.Goal = strings.Join(args, " ")
			switch {
			case (q.Skill == "") == (q.Goal == ""):
				return exit.WrongUsage(cmd, errors.New("say either --skill or what is to be done"))
			case q.Limit < 0:
				return exit.WrongUsage(cmd, errors.New("--limit is a number from 1"))
			}
			return v.do(cmd, func(ctx context.Context, c *client.Client) error { return v.listFound(ctx, cmd, c, q) })
		},
	}
	v.flags(cmd, waitAtMost)
	cmd.Flags().StringVar(&q.Skill, "skill", "", "name of a skill or tool that they have")
	cmd.Flags().IntVar(&q.Limit, "limit", 0, "agents at most; 0 for as many as the edge finds by itself")
	cmd.ValidArgsFunction = cobra.NoFileCompletions
	return cmd
}

func newCard() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:   "card ID",
		Short: "Show the card of an agent, in its own words",
		Long: "Show what an agent says of itself as it has written it, JSON, whatever protocol it speaks; of one that has written\n" +
			"nothing what the directory knows. `agora agent` shows the same of all agents.",
		Example: "  agora card bob\n  agora card bob | jq '.skills[].path'",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				card, err := insist(ctx, v.tell, func() (json.RawMessage, error) { return c.Card(ctx, args[0]) })
				if err != nil {
					return err
				}
				return newPrinter(cmd, v.json, false).document(card)
			})
		},
	}
	v.flags(cmd, waitAtMost)
	v.completeArgument(cmd, agentNames)
	return cmd
}

// document prints JSON: on a terminal so that it does nothing to that, elsewhere byte for byte.
func (p *printer) document(raw json.RawMessage) error {
	switch {
	case p.json:
		return p.jsonLine(raw)
	case !terminal.Is(p.out):
		return p.print(string(raw) + "\n")
	}
	var l line
	for row := range strings.Lines(string(raw)) {
		l.text(strings.TrimSuffix(row, "\n"), p.columns())
		l.newline()
	}
	return l.writeTo(p.out)
}

func newHandoff() *cobra.Command {
	o := &offerer{input: argument{what: "JSON", at: 2}}
	cmd := &cobra.Command{
		Use:   "handoff --to ID METHOD PATH [JSON | --file FILE]",
		Short: "Hand a request to an agent and print its answer",
		Long: "Hand a request to an agent of any protocol, as to a server with methods and paths, and print the answer as it comes.\n" +
			"The input is any JSON; - is that on stdin, unless it stands behind --. `agora card` shows which paths an agent has.\n" +
			"An answer that says that the agent can't goes to stderr. Ctrl-C tells the agent that nobody waits.",
		Example: "  agora handoff --to bob GET /status\n  agora handoff --to bob POST '/translate/{to}' '\"Hello\"' --param to=fr",
		Args:    o.input.last,
		RunE:    o.run,
	}
	o.flags(cmd, 4*waitAtMost)
	o.from(cmd, "from")
	o.addressee(cmd, &o.to)
	o.input.flags(cmd)
	cmd.Flags().StringArrayVar(&o.params, "param", nil, "NAME=VALUE for {NAME} in the path; may be given several times")
	cmd.Flags().BoolVar(&o.raw, "raw", false, "print the answer byte for byte, without a newline after it")
	cmd.ValidArgsFunction = func(_ *cobra.Command, args []string, _ string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) > 0 {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return []cobra.Completion{"GET", "POST", "PUT", "PATCH", "DELETE"}, cobra.ShellCompDirectiveNoFileComp
	}
	return cmd
}

// offerer is the verb handoff.
type offerer struct {
	verb
	to     string
	input  argument
	params []string
	raw    bool
}

func (o *offerer) run(cmd *cobra.Command, args []string) error {
	h, err := o.request(cmd, args)
	if err != nil {
		return exit.WrongUsage(cmd, err)
	}
	return o.do(cmd, func(ctx context.Context, c *client.Client) error {
		call, err := c.Handoff(ctx, o.to, h)
		if err != nil {
			return err
		}
		defer call.Close()
		return newPrinter(cmd, o.json, o.raw).answered(ctx, call)
	})
}

// request returns what the arguments ask for.
func (o *offerer) request(cmd *cobra.Command, args []string) (h client.Handoff, err error) {
	h.Method, h.Path = args[0], args[1]
	if !strings.HasPrefix(h.Path, "/") {
		return h, errors.New("PATH must begin with a slash")
	}
	params := map[string]string{}
	for _, p := range o.params {
		name, value, ok := strings.Cut(p, "=")
		if _, twice := params[name]; !ok || name == "" || twice {
			return h, fmt.Errorf("--param is NAME=VALUE, once for each name, not %q", p)
		}
		params[name] = value
	}
	if len(params) > 0 {
		h.Params = params
	}
	if !o.input.there(args) {
		return h, nil
	}
	b, err := o.input.read(cmd, args)
	if err == nil && !json.Valid(b) {
		err = errors.New("the input is no JSON; a text is written '\"so\"'")
	}
	h.Input = json.RawMessage(b)
	return h, err
}

// answerLine is an answer, or a piece of one, as a line of JSON.
type answerLine struct {
	Type  string          `json:"type"` // chunk or result
	From  string          `json:"from"`
	Code  int             `json:"code,omitempty"`
	Body  json.RawMessage `json:"body,omitempty"`
	Media string          `json:"media,omitempty"`
	Item  uint64          `json:"item,omitempty"`
}

// answered prints what is answered to a call, as it comes.
func (p *printer) answered(ctx context.Context, call *client.Call) error {
	if p.json {
		return p.answerLines(ctx, call)
	}
	next, stop := iter.Pull2(p.answerTexts(ctx, call))
	defer stop()
	text, err, said := next()
	if !said || err != nil { // there is no line to begin, or to end
		return err
	}
	all := func(yield func(string, error) bool) {
		for ; said && yield(text, err); text, err, said = next() {
		}
	}
	if terminal.Is(p.out) && !p.raw {
		return p.begin(head{name: terminal.NameOf(call.Agent())}, "").pour(all)
	}
	return p.verbatim(all)
}

func (p *printer) answerLines(ctx context.Context, call *client.Call) error {
	for a, err := range call.Chunks() {
		if err == nil {
			err = p.jsonLine(answerLine{Type: "chunk", From: call.Agent(), Body: a.Body, Media: a.Media, Item: a.Item})
		}
		if err != nil {
			return err
		}
	}
	a, err := call.Result(ctx)
	if err != nil {
		return err
	}
	return p.jsonLine(answerLine{Type: "result", From: call.Agent(), Code: a.Status, Body: a.Body, Media: a.Media})
}

// answerTexts yields what is answered to a call: texts and bytes as they are, but on a terminal how many bytes, and
// JSON, of which the text may be all there is, on a line of its own.
func (p *printer) answerTexts(ctx context.Context, call *client.Call) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		within := false // a line
		say := func(a client.Answer) bool {
			b, err := a.Bytes()
			text := string(b)
			switch {
			case err != nil || p.raw:
			case a.Media != "" && terminal.Is(p.out):
				text = fmt.Sprintf("[%d bytes of %s]", len(b), a.Media)
			case a.Media == "" && len(a.Body) > 0 && a.Body[0] != '"':
				if text = readable(a.Body); within {
					text = "\n" + text
				}
			}
			within = text == "" && within || text != "" && !strings.HasSuffix(text, "\n")
			return yield(text, err) && err == nil
		}
		for a, err := range call.Chunks() {
			if err != nil {
				yield("", err)
				return
			}
			if !say(a) {
				return
			}
		}
		switch a, err := call.Result(ctx); {
		case err != nil:
			yield("", err)
		case a.Body != nil:
			say(a)
		}
	}
}
