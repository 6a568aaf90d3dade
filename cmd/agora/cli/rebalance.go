package cli

import (
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	ops "github.com/agora-relay/agora/edge/operator"
)

func newRebalance() *cobra.Command {
	var o operator
	var rate int
	var plan bool
	cmd := o.prepare(&cobra.Command{
		ValidArgsFunction: cobra.NoFileCompletions,

		Use:   "rebalance",
		Short: "Have all edges have as many agents",
		Long: "Have each edge that has more agents than the mean tell as many as it has more to reconnect: their connections are closed\n" +
			"with code 1012, they go on at another edge, and nothing is lost. Agents go first that have nothing under way. Where they\n" +
			"go, their client says, or the balancer. It ends once the edges have begun. It does nothing while an edge drains or can't\n" +
			"serve. Edges do it by themselves, too, slowly: see the setting rebalance.percent.",
		Example: "  agora rebalance --plan\n  agora rebalance --rate 20",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if rate < 1 {
				return exit.WrongUsage(cmd, errors.New("--rate must be at least 1"))
			}
			method := http.MethodPost
			if plan {
				method = http.MethodGet
			}
			var v ops.Rebalancing
			printed, err := o.ask(cmd, method, "/v1/rebalance", url.Values{"rate": {strconv.Itoa(rate)}}, &v)
			if err == nil && !printed {
				printRebalancing(cmd.OutOrStdout(), &v, plan)
			}
			return exit.Failed(cmd, err)
		},
	})
	cmd.Flags().IntVar(&rate, "rate", 100, "agents that each edge tells per second")
	cmd.Flags().BoolVar(&plan, "plan", false, "only show how many agents would be moved")
	return cmd
}

// printRebalancing shows what edges do.
func printRebalancing(w io.Writer, v *ops.Rebalancing, plan bool) {
	above, moves := 0, 0
	t := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t, "EDGE\tAGENTS\tABOVE\tMOVES")
	for _, e := range v.Edges {
		above, moves = above+e.Above, moves+e.Moves
		fmt.Fprintf(t, "%s\t%d\t%d\t%d\n", e.Edge, e.Agents, e.Above, e.Moves)
	}
	t.Flush() // to a terminal, which is gone if it fails
	switch {
	case above == 0:
		fmt.Fprintln(w, "no edge has more agents than the mean")
	case plan:
		fmt.Fprintf(w, "agents that would be moved: %d\n", above)
	case moves < above:
		fmt.Fprintf(w, "agents that are being moved: %d of %d; the others' edges are moving some already, or do not answer\n", moves, above)
	default:
		fmt.Fprintf(w, "agents that are being moved: %d\n", moves)
	}
}
