package main

import (
	"bytes"
	"path/filepath"
	"testing"

	"github.com/agora-relay/agora/bench/internal/measure"
	"github.com/agora-relay/agora/bench/internal/system"
)

// measured is a report of one load on the yardstick and on one other system.
func measured(rate, cpu float64) *report {
	p := plan{systems: []system.Kind{{Name: "core"}, {Name: "agora-r1"}}, loads: []kind{{name: "saturated-200"}}}
	r := newReport(p)
	r.add("core", "saturated-200", measure.Result{Rate: 1000, ServerCPU: 2})
	r.add("agora-r1", "saturated-200", measure.Result{Rate: rate, ServerCPU: cpu})
	return r
}

func TestWhatIsWorseThanTheBaselineIsTold(t *testing.T) {
	o := options{baseline: filepath.Join(t.TempDir(), "baseline.json"), tolerance: 0.3, update: true}
	var out bytes.Buffer
	if err := measured(700, 4).guard(o, &out); err != nil {
		t.Fatal(err)
	}
	o.update = false
	for _, x := range []struct {
		about     string
		rate, cpu float64
		worse     bool
	}{
		{"the same", 700, 4, false},
		{"better", 900, 2, false},
		{"a little worse", 600, 5, false},
		{"slower", 450, 4, true},
		{"costlier", 700, 6, true},
	} {
		if err := measured(x.rate, x.cpu).guard(o, &out); (err != nil) != x.worse {
			t.Errorf("%s: %v", x.about, err)
		}
	}
}

func TestABaselineThatIsMissingIsAnError(t *testing.T) {
	o := options{baseline: filepath.Join(t.TempDir(), "none.json")}
	if err := measured(700, 4).guard(o, &bytes.Buffer{}); err == nil {
		t.Error("nothing was compared, and nobody told")
	}
}
