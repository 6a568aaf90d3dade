package cli

import (
	"fmt"
	"io"
	"net/http"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/edge/aip"
)

func newLinks() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		Use:   "links",
		Short: "Show the links to AIP gateways of others, and how each stands",
		Long: "Show the links to AIP gateways of others, of all tenants. Each is held by one edge, and another one takes it over.\n" +
			"NODES are those that are reached by it here, of as many as the gateway OFFERS: an id that is here already wins.\n" +
			"STATE is up; polling, where the gateway takes no subscriptions; connecting; down: its nodes stay as they were;\n" +
			"waiting, for an edge to hold it; or ending.",
		Args: cobra.NoArgs,
		RunE: shown(&o, http.MethodGet, "/v1/links", printLinks),
	})
}

// links is what the admin port answers about links: those of all tenants.
type links struct {
	Links []aip.LinkView `json:"links"`
}

func printLinks(w io.Writer, v *links, _ []string) {
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "ADDRESS\tTENANT\tSTATE\tEDGE\tNODES\tOFFERS\tSINCE\tERROR")
	for _, l := range v.Links {
		fmt.Fprintf(t, "%s\t%s\t%s\t%s\t%d\t%d\t%s\t%s\n", terminal.Visible(l.Address), l.Tenant, l.State, l.Edge, l.Nodes, l.Offered, moment(l.Since), terminal.Visible(l.Error))
	}
	t.Flush() // to a terminal, which is gone if it fails
}

func newLink() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,

		Use:   "link ADDRESS",
		Short: "Link the cluster to an AIP gateway of others",
		Long: "Link the cluster to the AIP gateway at ADDRESS, HOST:PORT: its nodes are listed here and reached by it, until\n" +
			"`agora unlink`. Edges of one cluster need no links. Those that are always there stand in the setting aip.link.",
		Example: "  agora link gateway.example.org:50051\n  agora links",
		Args:    cobra.ExactArgs(1),
		RunE: shown(&o, http.MethodPost, "/v1/link", func(w io.Writer, _ *struct{}, args []string) {
			fmt.Fprintf(w, "the cluster is linked to %s; `agora links` says how that stands\n", args[0])
		}),
	})
}

func newUnlink() *cobra.Command {
	var o operator
	return o.prepare(&cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,

		Use:   "unlink ADDRESS",
		Short: "End a link to an AIP gateway of others",
		Long: "End the link to the AIP gateway at ADDRESS: its nodes are listed here no more. One that stands in aip.link is made\n" +
			"again when an edge starts that has it there.",
		Args: cobra.ExactArgs(1),
		RunE: shown(&o, http.MethodPost, "/v1/unlink", func(w io.Writer, _ *struct{}, args []string) {
			fmt.Fprintf(w, "the link to %s is over\n", args[0])
		}),
	})
}
