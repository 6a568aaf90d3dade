package main

import (
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/soak"
)

// result is what became of the load in a drill.
type result struct {
	name   string
	took   time.Duration // by the drill, until all was well again
	report soak.Report
	late   error // what was under way did not arrive in time
	lists  listing
}

// failure says what the cluster promises and did not keep; nil if nothing.
func (r result) failure() error {
	var all []error
	if r.late != nil {
		all = append(all, r.late)
	}
	for _, v := range r.report.Listed {
		all = append(all, fmt.Errorf("%s %s", v.Kind, v.Text))
	}
	if len(r.lists.ghosts) > 0 {
		all = append(all, fmt.Errorf("listed and not connected: %s", strings.Join(r.lists.ghosts, ", ")))
	}
	if len(r.lists.missing) > 0 {
		all = append(all, fmt.Errorf("connected and not listed: %s", strings.Join(r.lists.missing, ", ")))
	}
	if len(all) == 0 {
		return nil
	}
	return fmt.Errorf("%s: %w", r.name, errors.Join(all...))
}

// String returns the result in a line for people.
func (r result) String() string {
	t := r.report.Total
	verdict := "kept"
	if err := r.failure(); err != nil {
		verdict = err.Error()
	}
	return fmt.Sprintf("%s: %.0f s; stored %d, delivered %d, lost %d, doubled %d, out of order %d, refused %d, unknown %d, gaps %d, "+
		"errors %v; away %.1f s; ghosts %d, missing %d, lists right after %.1f s: %s",
		r.name, r.took.Seconds(), t.Stored, t.Delivered, t.Lost, t.Duplicated, t.Reordered, t.Refused, t.Unknown, r.report.Gaps,
		r.report.Errors, r.report.Away, len(r.lists.ghosts), len(r.lists.missing), r.lists.after.Seconds(), verdict)
}

// table is the results of all drills, in their order.
type table []result

// print prints the table as Markdown.
func (t table) print(w io.Writer) error {
	var b strings.Builder
	b.WriteString("| drill | took | stored | lost | twice | out of order | calls that failed | away at most | ghosts | lists right after |\n")
	b.WriteString("|---|---|---|---|---|---|---|---|---|---|\n")
	for _, r := range t {
		n, failed := r.report.Total, uint64(0)
		for _, times := range r.report.Errors {
			failed += times
		}
		fmt.Fprintf(&b, "| %s | %.0f s | %d | %d | %d | %d | %d | %.1f s | %d | %.0f s |\n",
			r.name, r.took.Seconds(), n.Stored, n.Lost, n.Duplicated, n.Reordered, failed,
			r.report.Away, len(r.lists.ghosts)+len(r.lists.missing), r.lists.after.Seconds())
	}
	_, err := io.WriteString(w, b.String())
	return err
}

// failed returns what failed in all drills.
func (t table) failed() error {
	var all []error
	for _, r := range t {
		all = append(all, r.failure())
	}
	return errors.Join(all...)
}
