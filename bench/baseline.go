package main

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
)

// baseline is what an earlier tree did, as ratios to the first system of the same run, which depend less on the
// machine: by load, then by system.
type baseline map[string]map[string]ratios

// ratios are medians over those of the first system.
type ratios struct {
	Rate      float64 `json:"rate"`
	ServerCPU float64 `json:"server_cpu"` // per message
}

// ratios returns those of everything that was measured, but of the first system itself.
func (r *report) ratios() baseline {
	b := baseline{}
	first := r.plan.systems[0].Name
	for _, l := range r.plan.loads {
		base, ok := r.median(first, l.name)
		if !ok || base.Rate == 0 || base.ServerCPU == 0 {
			continue
		}
		b[l.name] = map[string]ratios{}
		for _, k := range r.plan.systems[1:] {
			if m, ok := r.median(k.Name, l.name); ok {
				b[l.name][k.Name] = ratios{round(m.Rate / base.Rate), round(m.ServerCPU / base.ServerCPU)}
			}
		}
	}
	return b
}

func round(v float64) float64 { return math.Round(v*100) / 100 }

// worse compares what was measured with a baseline: a sentence for each rate that is less, and each cost that is more,
// by more than the tolerance, a share. What only one of the two has is not compared.
func (b baseline) worse(now baseline, tolerance float64) (all []string) {
	for _, load := range slices.Sorted(maps.Keys(now)) {
		for _, system := range slices.Sorted(maps.Keys(now[load])) {
			was, ok := b[load][system]
			if !ok {
				continue
			}
			is := now[load][system]
			if is.Rate < was.Rate*(1-tolerance) {
				all = append(all, fmt.Sprintf("%s %s: %.2f of the yardstick's rate, %.2f before", system, load, is.Rate, was.Rate))
			}
			if is.ServerCPU > was.ServerCPU*(1+tolerance) {
				all = append(all, fmt.Sprintf("%s %s: %.2f of the yardstick's server CPU, %.2f before", system, load, is.ServerCPU, was.ServerCPU))
			}
		}
	}
	return all
}

// guard compares the report with the baseline that the options name, or writes it there; an error when something is
// worse.
func (r *report) guard(o options, stdout io.Writer) error {
	if o.baseline == "" {
		return nil
	}
	now := r.ratios()
	if o.update {
		b, err := json.MarshalIndent(now, "", "  ")
		if err != nil {
			return err
		}
		return os.WriteFile(o.baseline, append(b, '\n'), 0o644)
	}
	b, err := os.ReadFile(o.baseline)
	if err != nil {
		return err
	}
	var was baseline
	if err := json.Unmarshal(b, &was); err != nil {
		return fmt.Errorf("%s: %w", o.baseline, err)
	}
	worse := was.worse(now, o.tolerance)
	for _, s := range worse {
		fmt.Fprintln(stdout, "worse:", s)
	}
	if len(worse) > 0 {
		return fmt.Errorf("%d ratios are worse than those of %s by more than %.0f %%", len(worse), o.baseline, 100*o.tolerance)
	}
	fmt.Fprintf(stdout, "\nno ratio is worse than those of %s by more than %.0f %%\n", o.baseline, 100*o.tolerance)
	return nil
}
