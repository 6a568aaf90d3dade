package cli

import (
	"context"
	"encoding/json"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client/iat"
	"github.com/agora-relay/agora/wire/listing"
)

// aipDialect is what the directory calls agents and toolboxes of AIP.
const aipDialect = "aip"

func newNodes() *cobra.Command {
	var v verb
	q := iat.AgentQuery{Dialect: aipDialect}
	cmd := &cobra.Command{
		Use:   "nodes",
		Short: "List the agents and toolboxes of the AIP dialect",
		Long: "List the nodes of the AIP dialect that are registered at any edge: agents and toolboxes, with the address at which\n" +
			"edges call them. Their tools are listed by `agora tools`, and called by `agora call`.",
		Example: "  agora nodes\n  agora nodes --domain weather --json",
		Args:    cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.withIAT(cmd, func(ctx context.Context, c *iat.Client) error { return v.listNodes(ctx, cmd, c, q) })
		},
	}
	v.flags(cmd, waitAtMost)
	cmd.Flags().StringVar(&q.Domain, "domain", "", "those of this domain alone")
	return cmd
}

func (v *verb) listNodes(ctx context.Context, cmd *cobra.Command, c *iat.Client, q iat.AgentQuery) error {
	all, err := insist(ctx, v.tell, func() ([]agora.Agent, error) { return c.Agents(ctx, q) })
	if err != nil {
		return err
	}
	t := v.table(cmd, "ID\tKIND\tDOMAIN\tADDRESS\tNAME")
	for _, a := range all {
		address := addressOf(&a)
		t.row(nodeLine{listing.AgentOf(a), a.Type, address}, string(a.ID), a.Type, a.Domain, address, a.Name)
	}
	return t.end()
}

// addressOf returns where a node serves, as its card says.
func addressOf(a *agora.Agent) string {
	var said struct {
		Address string `json:"address"`
	}
	if json.Unmarshal(a.Metadata, &said) != nil {
		return "" // it says nothing that is known here
	}
	return said.Address
}

// nodeLine is a node as --json has it.
type nodeLine struct {
	listing.Agent
	Kind    string `json:"kind"`
	Address string `json:"address"`
}
