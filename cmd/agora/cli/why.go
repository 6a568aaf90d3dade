package cli

import (
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/exit"
	ops "github.com/agora-relay/agora/edge/operator"
)

func newWhy() *cobra.Command {
	var o operator
	var to, from, space string
	cmd := o.prepare(&cobra.Command{
		Use:   "why ID",
		Short: "Tell what became of a message",
		Long: "Tell what became of a message: where it is stored, to which connection it was written and when, whether it was\n" +
			"acknowledged or waits, and why. ID is the id of its frame, the seq under which it is stored, or SESSION/N, its\n" +
			"number in its sender's session. Without --to or --space everything that the log keeps is looked through.\n\n" +
			"When it was written to a connection is told as a span of time: from when it was stored, or that connection began, to\n" +
			"that connection's end, or now. Nothing is noted down for a single message: how far a connection has come is known\n" +
			"from its edge while it lasts, from what that writes down every second, and from its end; that says which connection\n" +
			"it was, but not at which instant.",
		Example: "  agora why 16001382144 --to bob\n  agora why order-17 --from alice",
		Args:    cobra.ExactArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			q := url.Values{"id": args}
			for name, value := range map[string]string{"to": to, "from": from, "space": space} {
				if value != "" {
					q.Set(name, value)
				}
			}
			var v ops.Fates
			printed, err := o.ask(cmd, http.MethodGet, "/v1/why", q, &v)
			if err == nil && !printed {
				printFates(cmd.OutOrStdout(), &v)
				if len(v.Messages) == 0 {
					err = agora.Errorf(agora.StreamNotFound, "%s", v.Note)
				}
			}
			return exit.Failed(cmd, err)
		},
	})
	f := cmd.Flags()
	f.StringVar(&to, "to", "", "only in this agent's mailbox")
	f.StringVar(&from, "from", "", "only what this agent sent")
	f.StringVar(&space, "space", "", "only in this space")
	return cmd
}

func printFates(w io.Writer, v *ops.Fates) {
	for i := range v.Messages {
		m := &v.Messages[i]
		to := "to " + string(m.To)
		if m.Space != "" {
			to = "in space " + m.Space
		}
		what := m.Kind
		if m.Part != "whole" {
			what += " (" + m.Part + " of stream " + m.StreamID + ")"
		}
		fmt.Fprintf(w, "%s from %s %s, seq %d: %s\n", what, m.From, to, m.Seq, m.State)
		fmt.Fprintf(w, "  why        %s\n", m.Why)
		fmt.Fprintf(w, "  stored     %s in %s, record %d, part %d of %d; kept until %s\n",
			moment(m.Stored.At), m.Stored.Stream, m.Stored.Sequence, m.Stored.Index+1, m.Stored.Parts, moment(m.Stored.Kept))
		if g := m.Given; g != nil {
			until := "now"
			if g.To != nil {
				until = moment(*g.To)
			}
			fmt.Fprintf(w, "  delivered  to connection %s at %s, between %s and %s\n", g.Conn, g.Edge, moment(g.From), until)
		}
		if m.Session != "" {
			fmt.Fprintf(w, "  sent       in session %s", m.Session)
			if m.N > 0 {
				fmt.Fprintf(w, " as number %d", m.N)
			}
			fmt.Fprintln(w)
		}
		for _, r := range m.Readers {
			if !r.Has {
				fmt.Fprintf(w, "  waiting    for %s\n", r.Agent)
			}
		}
		if m.Trace != "" {
			fmt.Fprintf(w, "  trace      %s\n", m.Trace)
		}
	}
}

func moment(t time.Time) string { return t.UTC().Format("2006-01-02T15:04:05.000Z") }
