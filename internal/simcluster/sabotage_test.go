//go:build sabotage

package simcluster

import (
	"os"
	"strings"
	"testing"
)

// within is how many histories may pass before one fails for want of a protection.
const within = 2000

// needless are protections without which no history fails, each with the reason. Tests of their own guard these: see internal/guard.
var needless = map[string]string{}

// protections are those that histories need; several stand in for each other where one alone is not missed.
var protections = []string{
	"nudge", "audit", "gap", "cursor", "retry", "msgid", "number", "name", "order", "fence", "epoch", "settle", "gone", "lease",
	"drain", "assert", "look", "whole", "call", "hold", "once", "first", "box", "turn", "act", "rejoin", "address", "adopt", "clock",
}

// TestHistoriesNeedEachProtection leaves out each protection: some history must fail without it.
func TestHistoriesNeedEachProtection(t *testing.T) {
	only := os.Getenv("AGORA_SIMULATE_WITHOUT")
	for _, name := range protections {
		if only != "" && only != name {
			continue
		}
		t.Run(name, func(t *testing.T) {
			s := simulate([]string{"AGORA_SABOTAGE=" + name}, 0, within, 0, 1)
			if len(s.failed) > 0 {
				first, _, _ := strings.Cut(s.failed[0].Failures[0], "\n")
				t.Logf("without %s the history of seed %d fails, after %d: %s", name, s.failed[0].Plan.Seed, s.played, first)
				return
			}
			if needless[name] == "" {
				t.Errorf("%d histories are as they must be without %s", s.played, name)
			}
		})
	}
}
