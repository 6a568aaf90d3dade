//go:build sabotage

package simcluster

import (
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// within is how many histories may pass before one fails for want of a protection.
const within = 2000

// protection is one of internal/guard's, and how to find what goes wrong without it.
type protection struct {
	name   string
	beside string   // what is left out anyway: it stands in for the protection, so that nothing goes wrong without that alone
	seeds  []uint64 // histories that are known to fail without it, and are played first; docs/reliability.md has them, too
}

// without returns the environment of players that leave a protection out.
func (p protection) without() []string { return sabotaged(strings.Trim(p.name+","+p.beside, ",")) }

// with returns the environment of players that do not, and leave out the same otherwise.
func (p protection) with() []string { return sabotaged(p.beside) }

func sabotaged(off string) []string { return []string{"AGORA_SABOTAGE=" + off} }

// protections are all.
var protections = []protection{
	{name: "nudge", beside: "audit", seeds: []uint64{10, 11}},
	{name: "audit", seeds: []uint64{44, 9, 57}},
	{name: "gap", seeds: []uint64{10, 7}},
	{name: "cursor", seeds: []uint64{1, 2}},
	{name: "retry", seeds: []uint64{0, 1}},
	{name: "msgid", seeds: []uint64{10, 11, 6}},
	{name: "number", seeds: []uint64{29}},
	{name: "name", seeds: []uint64{67}},
	{name: "order", seeds: []uint64{39}},
	{name: "fence", seeds: []uint64{38}},
	{name: "epoch", seeds: []uint64{962}},
	{name: "settle", seeds: []uint64{20, 37}},
	{name: "gone", seeds: []uint64{0, 1}},
	{name: "lease", seeds: []uint64{0, 1}},
	{name: "drain", seeds: []uint64{18, 20}},
	{name: "assert", seeds: []uint64{27}},
	{name: "look", seeds: []uint64{27}},
	{name: "whole", seeds: []uint64{1, 49}},
	{name: "call", seeds: []uint64{35, 51}},
	{name: "hold", seeds: []uint64{88}},
	{name: "once", seeds: []uint64{3, 4}},
	{name: "first", seeds: []uint64{34, 51}},
	{name: "box", beside: "hold", seeds: []uint64{62, 91, 145}},
	{name: "turn", seeds: []uint64{89}},
	{name: "act", seeds: []uint64{64}},
	{name: "rejoin", seeds: []uint64{47}},
	{name: "address", seeds: []uint64{25}},
	{name: "adopt", seeds: []uint64{25}},
	{name: "clock", seeds: []uint64{36, 37}},
}

// TestHistoriesNeedEachProtection leaves out each protection: some history must fail without it that is as it must be
// with it.
func TestHistoriesNeedEachProtection(t *testing.T) {
	only := os.Getenv("AGORA_SIMULATE_WITHOUT")
	for _, p := range protections {
		if only == "" || only == p.name {
			t.Run(p.name, p.find)
		}
	}
}

// find plays the histories that are known to fail, then others from the first on.
func (p protection) find(t *testing.T) {
	played := 0
	for _, seed := range p.seeds {
		played++
		if p.isNeededBy(t, seed, played) {
			return
		}
	}
	for first := uint64(0); first < within; first += batch {
		for _, seed := range p.failing(first) {
			if p.isNeededBy(t, seed, played+int(seed)+1) {
				return
			}
		}
	}
	t.Errorf("%d histories are as they must be without %s", played+within, p.name)
}

// isNeededBy reports whether the history of a seed is as it must be with the protection, and not without it.
func (p protection) isNeededBy(t *testing.T, seed uint64, played int) bool {
	if r := playOnce(p.with(), Plan{Seed: seed}); len(r.Failures) > 0 {
		t.Logf("the history of seed %d fails anyway: %s", seed, firstLine(r))
		return false
	}
	r := playOnce(p.without(), Plan{Seed: seed})
	if len(r.Failures) == 0 {
		return false
	}
	t.Logf("without %s the history of seed %d fails, after %d: %s", p.name, seed, played, firstLine(r))
	return true
}

func firstLine(r Result) string {
	line, _, _ := strings.Cut(r.Failures[0], "\n")
	return line
}

// batch is how many histories are played before it is looked at which of them have failed.
const batch = 20

// failing plays a batch of histories without the protection, and returns the seeds of those that fail.
func (p protection) failing(first uint64) (seeds []uint64) {
	for _, r := range simulate(p.without(), first, batch, 0, batch).failed {
		seeds = append(seeds, r.Plan.Seed)
	}
	slices.Sort(seeds)
	return seeds
}

// TestEachProtectionIsTold: the table of docs/reliability.md has a row for each protection there is, with the seeds
// that are known here.
func TestEachProtectionIsTold(t *testing.T) {
	source, err := os.ReadFile("../guard/sabotage.go")
	if err != nil {
		t.Fatal(err)
	}
	doc, err := os.ReadFile("../../docs/reliability.md")
	if err != nil {
		t.Fatal(err)
	}
	left := map[string]bool{}
	for _, m := range regexp.MustCompile(`= with\("(\w+)"\)`).FindAllSubmatch(source, -1) {
		left[string(m[1])] = true
	}
	for _, p := range protections {
		if !left[p.name] {
			t.Errorf("internal/guard has no %s, or it stands here twice", p.name)
		}
		delete(left, p.name)
		name := fmt.Sprintf("`%s`", p.name)
		if p.beside != "" {
			name = fmt.Sprintf("`%s`, beside `%s`", p.name, p.beside)
		}
		if row := fmt.Sprintf("\n| %s | %s |", name, strings.Trim(fmt.Sprint(p.seeds), "[]")); !strings.Contains(string(doc), row) {
			t.Errorf("docs/reliability.md has no row that begins with %q", row)
		}
	}
	if len(left) > 0 {
		t.Errorf("these are left out by no history: %v", slices.Sorted(maps.Keys(left)))
	}
}
