package cli

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"time"

	"github.com/spf13/cobra"

	ops "github.com/agora-relay/agora/edge/operator"
)

func newInspect() *cobra.Command {
	inspect := &cobra.Command{Use: "inspect", Short: "Show what is known of an agent, a space or an edge", Args: cobra.NoArgs}
	inspect.AddCommand(newInspectAgent(), newInspectSpace(), newInspectEdge())
	return inspect
}

func newInspectAgent() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		Use:   "agent ID",
		Short: "Show an agent's session, positions, mailbox and history",
		Long:  "Show where an agent is, how far it has read, what its mailbox keeps, and when and why its last sessions ended.",
		Args:  cobra.ExactArgs(1),
		RunE:  shown(&o, http.MethodGet, "/v1/agent", printAgent),
	})
}

func printAgent(w io.Writer, v *ops.AgentView, _ []string) {
	line := func(name, format string, args ...any) {
		fmt.Fprintf(w, "%-10s %s\n", name, fmt.Sprintf(format, args...))
	}
	line("agent", "%s, tenant %s: %s", v.Agent, v.Tenant, v.State)
	if v.Session != "" {
		line("session", "%s at %s, connection %s, epoch %d, principal %q", v.Session, v.Edge, v.Conn, v.Epoch, v.Principal)
	}
	if v.GraceEnds != nil && v.State == "grace" {
		line("grace", "until %s", moment(*v.GraceEnds))
	}
	if v.KnownTo != nil && v.State == "away" {
		line("known", "until %s", moment(*v.KnownTo))
	}
	line("position", "read up to %d, written up to %d", v.Confirmed, v.Written)
	line("mailbox", "%d records in %s, %d of them unread, seq %d to %d", v.Mailbox.Records, v.Mailbox.Stream, v.Mailbox.Unread, v.Mailbox.First, v.Mailbox.Last)
	if l := v.Live; l != nil {
		line("live", "since %s, heard %s ago, %d bytes before its socket, acknowledges by itself: %t",
			moment(l.Since), time.Duration(l.HeardMS)*time.Millisecond, l.Queued, l.Acks)
	}
	if len(v.Unsettled) > 0 {
		line("waits for", "%s", strings.Join(v.Unsettled, ", "))
	}
	for _, s := range v.Spaces {
		line("space", "%s, read up to %d", s.Space, s.Seq)
	}
	for _, s := range v.Sends {
		line("sends to", "%s %s", s.To, strings.Join(s.Open, ", "))
	}
	for _, e := range v.History {
		line(e.What, "%s %s %s session %s %s", moment(e.At), e.Edge, e.Conn, e.Session, e.Why)
	}
}

func newInspectSpace() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		Use:   "space NAME",
		Short: "Show a space's members, how far they have read, and its log",
		Long:  "Show a space's members, how far each has read (as it was written last, some seconds ago), and what its log keeps.",
		Args:  cobra.ExactArgs(1),
		RunE:  shown(&o, http.MethodGet, "/v1/space", printSpace),
	})
}

func printSpace(w io.Writer, v *ops.SpaceView, _ []string) {
	fmt.Fprintf(w, "space %s, tenant %s, %s: %d members\n", v.Space, v.Tenant, v.Type, v.Count)
	fmt.Fprintf(w, "log %s: %d records, seq %d to %d\n", v.Log.Stream, v.Log.Records, v.Log.First, v.Log.Last)
	for _, m := range v.Members {
		fmt.Fprintf(w, "  %s read up to %d\n", m.Agent, m.Seq)
	}
}

func newInspectEdge() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		Use:   "edge [ID]",
		Short: "Show an edge, or all of them: lease, sessions, load",
		Long:  "Show an edge, or all edges of the cluster: whether its lease holds, whether it is ready, and what it holds.",
		Args:  cobra.MaximumNArgs(1),
		RunE:  shown(&o, http.MethodGet, "/v1/edges", printEdges),
	})
}

// edgeViews is what the admin port answers about edges.
type edgeViews struct {
	Edges []ops.EdgeView `json:"edges"`
}

func printEdges(w io.Writer, v *edgeViews, _ []string) {
	for _, e := range v.Edges {
		lease := "no lease"
		if e.Alive {
			lease = fmt.Sprintf("lease renewed %s ago", time.Duration(e.RenewedMS)*time.Millisecond)
		}
		fmt.Fprintf(w, "%s  %s", e.Edge, lease)
		if s := e.Self; s != nil {
			fmt.Fprintf(w, ", ready: %s, since %s, %d sessions, %d lanes, %d inboxes, %d bytes queued, clock ahead by %.3fs",
				s.Ready, moment(s.Since), s.Sessions, s.Lanes, s.Inboxes, s.Held, s.Skew)
		} else {
			fmt.Fprint(w, ", does not answer")
		}
		fmt.Fprintln(w)
	}
}
