package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"runtime"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/agora-relay/agora/bench/internal/measure"
)

// report is everything that was measured.
type report struct {
	plan  plan
	cells map[[2]string][]measure.Result // by system and load, one for each run
}

func newReport(p plan) *report { return &report{plan: p, cells: map[[2]string][]measure.Result{}} }

func (r *report) add(system, load string, res measure.Result) {
	at := [2]string{system, load}
	r.cells[at] = append(r.cells[at], res)
}

// median returns, figure by figure, the middle of what the runs measured; the sums of what was lost. ok is false where
// nothing was measured.
func (r *report) median(system, name string) (m measure.Result, ok bool) {
	all := r.cells[[2]string{system, name}]
	if len(all) == 0 {
		return m, false
	}
	of := func(get func(measure.Result) float64) float64 {
		v := make([]float64, len(all))
		for i, res := range all {
			v[i] = get(res)
		}
		slices.Sort(v)
		return (v[len(v)/2] + v[(len(v)-1)/2]) / 2
	}
	m = measure.Result{
		Rate:      of(func(r measure.Result) float64 { return r.Rate }),
		ServerCPU: of(func(r measure.Result) float64 { return r.ServerCPU }),
		EdgeCPU:   of(func(r measure.Result) float64 { return r.EdgeCPU }),
		ClientCPU: of(func(r measure.Result) float64 { return r.ClientCPU }),
		P50:       of(func(r measure.Result) float64 { return r.P50 }),
		P99:       of(func(r measure.Result) float64 { return r.P99 }),
		Memory:    of(func(r measure.Result) float64 { return r.Memory }),
		RSS:       of(func(r measure.Result) float64 { return r.RSS }),

		EdgeMemory: of(func(r measure.Result) float64 { return r.EdgeMemory }),
	}
	for _, res := range all {
		m.Sent += res.Sent
		m.Lost += res.Lost
		m.Disordered += res.Disordered
		m.Faults += res.Faults
		m.Fault = cmp.Or(m.Fault, res.Fault)
	}
	return m, true
}

// table is one load's figures, a row for each system. Ratios are to the first one.
func (r *report) table(l kind) (head []string, rows [][]string) {
	first := r.plan.systems[0].Name
	base, _ := r.median(first, l.name)
	head = []string{"system", "keeps", l.unit + "/s", "of " + first, "server µs", "of " + first, "edges µs", "client µs", "p50 ms", "of " + first, "p99 ms", "MiB", "lost"}
	if l.memory {
		head = append(head, "KiB an agent", "of edges")
	}
	for _, k := range r.plan.systems {
		m, ok := r.median(k.Name, l.name)
		if !ok {
			continue
		}
		row := []string{
			k.Name, k.Keeps, count(m.Rate), ratio(m.Rate, base.Rate), micros(m.ServerCPU), ratio(m.ServerCPU, base.ServerCPU),
			micros(m.EdgeCPU), micros(m.ClientCPU), ms(m.P50), ratio(m.P50, base.P50), ms(m.P99), fmt.Sprintf("%.0f", m.RSS/(1<<20)), lost(m),
		}
		if l.memory {
			row = append(row, fmt.Sprintf("%.1f", m.Memory/1024), fmt.Sprintf("%.1f", m.EdgeMemory/1024))
		}
		rows = append(rows, row)
	}
	return head, rows
}

// count writes a rate with thousands parted.
func count(v float64) string {
	s := fmt.Sprintf("%.0f", v)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// micros writes microseconds with as many digits as tell them apart.
func micros(us float64) string {
	if us < 10 {
		return fmt.Sprintf("%.2f", us)
	}
	return fmt.Sprintf("%.1f", us)
}

func ratio(v, base float64) string {
	if base == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", v/base)
}

func ms(us float64) string {
	if us == 0 {
		return ""
	}
	return fmt.Sprintf("%.2f", us/1000)
}

func lost(m measure.Result) string {
	s := fmt.Sprint(m.Lost)
	if m.Disordered > 0 {
		s += fmt.Sprintf(", %d out of order", m.Disordered)
	}
	if m.Faults > 0 {
		s += fmt.Sprintf(", %d faults", m.Faults)
	}
	return s
}

// save prints the tables, and writes the files that the options name.
func (r *report) save(o options, stdout io.Writer) error {
	if err := r.print(stdout); err != nil {
		return err
	}
	if o.markdown != "" {
		if err := os.WriteFile(o.markdown, []byte(r.tables()), 0o644); err != nil {
			return err
		}
	}
	if o.jsonFile == "" {
		return nil
	}
	b, err := json.MarshalIndent(saved{runtime.GOOS + "/" + runtime.GOARCH, runtime.NumCPU(), runtime.Version(), time.Now(), o.cfg, r.all()}, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(o.jsonFile, append(b, '\n'), 0o644)
}

// saved is what the JSON has.
type saved struct {
	Machine    string         `json:"machine"`
	Processors int            `json:"processors"`
	Go         string         `json:"go"`
	At         time.Time      `json:"at"`
	Config     measure.Config `json:"config"`
	Cells      []cell         `json:"cells"`
}

// cell is what the JSON has of one load on one system.
type cell struct {
	System string           `json:"system"`
	Load   string           `json:"load"`
	Unit   string           `json:"unit"`
	Median measure.Result   `json:"median"`
	Runs   []measure.Result `json:"runs"`
}

func (r *report) all() (cells []cell) {
	for _, l := range r.plan.loads {
		for _, k := range r.plan.systems {
			if m, ok := r.median(k.Name, l.name); ok {
				cells = append(cells, cell{k.Name, l.name, l.unit, m, r.cells[[2]string{k.Name, l.name}]})
			}
		}
	}
	return cells
}

// print prints the tables for a terminal.
func (r *report) print(w io.Writer) error {
	for _, l := range r.plan.loads {
		head, rows := r.table(l)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(w, "\n%s: %s\n", l.name, l.about)
		t := tabwriter.NewWriter(w, 0, 0, 2, ' ', tabwriter.AlignRight)
		for _, row := range append([][]string{head}, rows...) {
			fmt.Fprintln(t, strings.Join(row, "\t")+"\t")
		}
		if err := t.Flush(); err != nil {
			return err
		}
	}
	return nil
}

// tables returns the tables in Markdown.
func (r *report) tables() string {
	var b strings.Builder
	for _, l := range r.plan.loads {
		head, rows := r.table(l)
		if len(rows) == 0 {
			continue
		}
		fmt.Fprintf(&b, "**%s** (`-load %s`)\n\n| %s |\n|%s\n", l.about, l.name, strings.Join(head, " | "), strings.Repeat("---|", len(head)))
		for _, row := range rows {
			fmt.Fprintf(&b, "| %s |\n", strings.Join(row, " | "))
		}
		b.WriteByte('\n')
	}
	return b.String()
}
