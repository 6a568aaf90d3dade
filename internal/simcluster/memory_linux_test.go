//go:build !race

package simcluster

import (
	"strings"
	"syscall"
	"testing"
)

// mostMemory is how much a player may take: ten times what a usual history does. Within a history nothing is collected,
// so one that spins takes gigabytes within seconds.
const mostMemory = 2 << 30

// limitMemory has the process die, and say why, before it takes more than that.
func limitMemory() error {
	return syscall.Setrlimit(syscall.RLIMIT_DATA, &syscall.Rlimit{Cur: mostMemory, Max: mostMemory})
}

// TestAHistoryThatTakesTooMuchMemoryFails plays one that spins, and would take four times as much.
func TestAHistoryThatTakesTooMuchMemoryFails(t *testing.T) {
	p := player{}
	defer p.end()
	r := p.play(Plan{Edges: 2, Agents: 3, Records: 100, Scenes: []string{"gluttons"}, Steps: []Step{{Does: "eats"}}})
	if len(r.Failures) != 1 || !strings.Contains(r.Failures[0], "out of memory") {
		t.Errorf("its failures are %.300q", r.Failures)
	}
	if r := p.play(Plan{Edges: 2, Agents: 3, Records: 100, Steps: []Step{{Does: "speaks"}}}); len(r.Failures) > 0 {
		t.Errorf("the next one fails too: %.300q", r.Failures)
	}
}
