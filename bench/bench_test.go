package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/bench/internal/measure"
	"github.com/agora-relay/agora/bench/internal/system"
	"github.com/agora-relay/agora/internal/loadgen"
)

// TestEverySystemCarriesEveryLoad runs all that needs no more than Go and redis-server, small and short.
func TestEverySystemCarriesEveryLoad(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	tools := &system.Tools{Module: "..", Cache: t.TempDir()}
	cfg := measure.Config{Warm: 20 * time.Millisecond, Time: 200 * time.Millisecond, Size: 100, Window: 16, Patience: 2 * time.Minute}
	small := map[string]runner{
		"saturated": func(ctx context.Context, s measure.Target, name string, cfg measure.Config) (measure.Result, error) {
			return measure.Saturate(ctx, s, measure.Shape{Senders: 4, Receivers: 8}, cfg)
		},
		"paced": func(ctx context.Context, s measure.Target, name string, cfg measure.Config) (measure.Result, error) {
			return measure.Pace(ctx, s, measure.Shape{Senders: 8, Receivers: 8}, 500, cfg)
		},
		"fanout": func(ctx context.Context, s measure.Target, name string, cfg measure.Config) (measure.Result, error) {
			return measure.FanOut(ctx, s, 20, cfg)
		},
		"asks": func(ctx context.Context, s measure.Target, name string, cfg measure.Config) (measure.Result, error) {
			return measure.Asks(ctx, s, name, 2, cfg)
		},
		"oneshots": func(ctx context.Context, s measure.Target, name string, cfg measure.Config) (measure.Result, error) {
			return measure.OneShots(ctx, s, 8, cfg)
		},
	}
	for _, k := range system.Kinds {
		if k.Foreign || k.AIP {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			s, err := k.Start(t.Context(), tools, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			for name, run := range small {
				r, err := run(t.Context(), s, name, cfg)
				for cfg := cfg; err == nil && (r.Sent == 0 || r.Rate == 0) && cfg.Time < time.Minute; { // in so short a time, on a busy machine
					cfg.Time *= 4
					r, err = run(t.Context(), s, name, cfg)
				}
				if errors.Is(err, loadgen.ErrNone) && (k.Keeps == "nothing" || strings.HasPrefix(k.Name, "iat") || name == "asks" && !strings.HasPrefix(k.Name, "agora")) {
					continue
				}
				if err != nil || r.Sent == 0 || r.Rate == 0 || r.Lost+r.Disordered+r.Faults > 0 {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			}
			if r, err := measure.Idle(t.Context(), s, 20, cfg); err != nil || r.RSS == 0 || r.Faults > 0 {
				t.Errorf("idle: %+v, %v", r, err)
			}
		})
	}
}

func TestEverySystemOfAIPCarriesItsLoads(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	tools := &system.Tools{Module: "..", Cache: t.TempDir()}
	cfg := measure.Config{Warm: 20 * time.Millisecond, Time: 200 * time.Millisecond, Size: 100, Window: 16, Patience: 2 * time.Minute}
	for _, k := range system.Kinds {
		if k.Foreign || !k.AIP {
			continue
		}
		t.Run(k.Name, func(t *testing.T) {
			t.Parallel()
			cfg := cfg
			s, err := k.Start(t.Context(), tools, t.TempDir())
			if err != nil {
				t.Fatal(err)
			}
			defer s.Stop()
			called, is := measure.Target(s).(measure.Called)
			if !is {
				t.Fatal("nobody calls by AIP there")
			}
			for name, run := range map[string]func() (measure.Result, error){
				"tools": func() (measure.Result, error) { return measure.Tools(t.Context(), called, "tools", 2, 2, cfg) },
				"sessions": func() (measure.Result, error) {
					return measure.Sessions(t.Context(), called, "sessions", measure.Talk{Programs: 2, Each: 2, Size: 1 << 10}, cfg)
				},
			} {
				r, err := run()
				for err == nil && r.Rate == 0 && cfg.Time < time.Minute { // in so short a time, on a busy machine
					cfg.Time *= 4
					r, err = run()
				}
				if err != nil || r.Rate == 0 || r.Faults > 0 {
					t.Errorf("%s: %+v, %v", name, r, err)
				}
			}
		})
	}
}

func TestTheCommandPrintsRatiosAndWritesFiles(t *testing.T) {
	dir := t.TempDir()
	asJSON, asMarkdown := filepath.Join(dir, "all.json"), filepath.Join(dir, "tables.md")
	var out, said bytes.Buffer
	args := []string{
		"-only", "core", "-load", "saturated-200", "-runs", "2", "-warm", "0s", "-time", "500ms", "-window", "8",
		"-cache", dir, "-data", dir, "-json", asJSON, "-markdown", asMarkdown,
	}
	if status := run(t.Context(), args, &out, &said); status != 0 {
		t.Fatalf("status %d: %s", status, said.String())
	}
	if !strings.Contains(out.String(), "1.00") || !strings.Contains(said.String(), "about") || strings.Count(said.String(), "\nrun ") != 2 {
		t.Errorf("it prints %s and says %s", out.String(), said.String())
	}
	var all saved
	b, err := os.ReadFile(asJSON)
	if err != nil || json.Unmarshal(b, &all) != nil || len(all.Cells) != 1 || len(all.Cells[0].Runs) != 2 || all.Cells[0].Median.Rate == 0 {
		t.Errorf("JSON is %s, %v", b, err)
	}
	if b, err := os.ReadFile(asMarkdown); err != nil || !bytes.Contains(b, []byte("| core | nothing |")) {
		t.Errorf("Markdown is %s, %v", b, err)
	}
}

func TestTheCommandIsToldHowToBeUsed(t *testing.T) {
	for _, args := range []string{"-runs 0", "-time 0s", "-size 10", "-only nobody", "-load nothing", "-nonsense", "more"} {
		var out, said bytes.Buffer
		if status := run(t.Context(), strings.Fields(args), &out, &said); status != 2 || said.Len() == 0 {
			t.Errorf("%s: status %d, %q", args, status, said.String())
		}
	}
	var out bytes.Buffer
	if status := run(t.Context(), []string{"-list"}, &out, &out); status != 0 || !strings.Contains(out.String(), "agora-r3") {
		t.Errorf("-list: status %d, %q", status, out.String())
	}
}

func TestLoadsAreChosenByNameOrByHowTheyBegin(t *testing.T) {
	for asked, want := range map[string]int{"crowd-100": 1, "crowd": 4, "paced,crowd-15000,oneshot": 4, "": 4, "all": len(loads())} {
		p, err := (&options{runs: 1, loads: asked, cfg: measure.Config{Time: 1, Size: 100, Window: 1}}).plan()
		if err != nil || len(p.loads) != want {
			t.Errorf("%q: %d loads, %v; want %d", asked, len(p.loads), err, want)
		}
	}
}

func TestMediansAndRatios(t *testing.T) {
	p, err := (&options{runs: 3, only: "core,agora-r1", loads: "paced", cfg: measure.Config{Time: 1, Size: 100, Window: 1}}).plan()
	if err != nil {
		t.Fatal(err)
	}
	r := newReport(p)
	for _, rate := range []float64{3000, 1000, 2000} {
		r.add("core", "paced", measure.Result{Rate: rate, Lost: 1})
		r.add("agora-r1", "paced", measure.Result{Rate: rate / 2})
	}
	_, rows := r.table(p.loads[0])
	got := strings.Join(rows[0], "|") + "\n" + strings.Join(rows[1], "|")
	for _, want := range []string{"core|nothing|2,000|1.00|", "|3\n", "agora-r1|R1, file|1,000|0.50|"} {
		if !strings.Contains(got, want) {
			t.Errorf("rows are %s, want %s in them", got, want)
		}
	}
}
