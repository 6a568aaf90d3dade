package cli

import (
	"bytes"
	"context"
	"fmt"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

func newSpaces() *cobra.Command {
	var v verb
	cmd := &cobra.Command{
		Use:   "spaces",
		Short: "List the spaces that there are",
		Long:  "List the spaces that there are, with their type and the number of their members.",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return v.do(cmd, func(ctx context.Context, c *client.Client) error {
				all, err := insist(ctx, v.tell, func() ([]client.SpaceInfo, error) { return c.Spaces(ctx) })
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
	*printer
	text    bytes.Buffer
	columns *tabwriter.Writer
	err     error
}

func (v *verb) table(cmd *cobra.Command, head string) *table {
	t := &table{printer: newPrinter(cmd, v.json, false)}
	t.columns = tabwriter.NewWriter(&t.text, 0, 0, 2, ' ', 0)
	fmt.Fprintln(t.columns, head)
	return t
}

func (t *table) row(line any, cells ...string) {
	if t.err != nil {
		return
	}
	if t.json {
		t.err = t.jsonLine(line)
		return
	}
	for i, c := range cells {
		cells[i] = terminal.Visible(c)
	}
	fmt.Fprintln(t.columns, strings.Join(cells, "\t"))
}

func (t *table) end() error {
	if t.err != nil || t.json {
		return t.err
	}
	t.columns.Flush() // into memory
	var l line
	for row := range strings.Lines(t.text.String()) {
		l.text(strings.TrimSuffix(row, "\n"), t.screen.columns())
		l.newline()
	}
	return l.writeTo(t.out)
}
