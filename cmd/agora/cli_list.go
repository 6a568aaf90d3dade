package main

import (
	"context"
	"fmt"
	"io"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
)

func newAgents() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:   "agents",
		Short: "List the agents that are there",
		Long:  "List the agents that have a session now.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				all, err := c.Agents(ctx)
				if err != nil {
					return err
				}
				t := v.table(cmd, "ID\tNAME\tSINCE\tENDPOINT")
				for _, a := range all {
					since := a.RegisteredAt.Format(time.RFC3339)
					t.row(agentLine{string(a.ID), a.Name, a.Endpoint, since}, string(a.ID), a.Name, since, a.Endpoint)
				}
				return t.end()
			})
		},
	}
	v.flags(cmd, waitAtMost)
	return cmd
}

type agentLine struct {
	ID           string `json:"id"`
	Name         string `json:"name"`
	Endpoint     string `json:"endpoint,omitempty"`
	RegisteredAt string `json:"registered_at"`
}

func newSpaces() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:   "spaces",
		Short: "List the spaces that there are",
		Long:  "List the spaces that there are, with their type and the number of their members.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				all, err := c.Spaces(ctx)
				if err != nil {
					return err
				}
				t := v.table(cmd, "SPACE\tTYPE\tMEMBERS")
				for _, s := range all {
					t.row(spaceLine{s.Name, s.Type, s.Members}, s.Name, s.Type, fmt.Sprint(s.Members))
				}
				return t.end()
			})
		},
	}
	v.flags(cmd, waitAtMost)
	return cmd
}

type spaceLine struct {
	ID      string `json:"id"`
	Type    string `json:"type"`
	Members int    `json:"member_count"`
}

// table prints rows: for people in columns, as JSON a line each.
type table struct {
	json    *printer // nil for people
	columns *tabwriter.Writer
	err     error
}

func (v *verb) table(cmd *cobra.Command, head string) *table {
	if v.json {
		return &table{json: newPrinter(cmd, false)}
	}
	t := &table{columns: tabwriter.NewWriter(cmd.OutOrStdout(), 0, 0, 2, ' ', 0)}
	_, t.err = fmt.Fprintln(t.columns, head)
	return t
}

func (t *table) row(line any, cells ...string) {
	if t.err != nil {
		return
	}
	if t.json != nil {
		t.err = t.json.line(line)
		return
	}
	for i, c := range cells {
		if i > 0 {
			io.WriteString(t.columns, "\t")
		}
		io.WriteString(t.columns, c)
	}
	_, t.err = fmt.Fprintln(t.columns)
}

func (t *table) end() error {
	if t.err == nil && t.columns != nil {
		t.err = t.columns.Flush()
	}
	return t.err
}
