package simcluster

import (
	"maps"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/agora-relay/agora"
)

// Plan is what is to happen in a history.
type Plan struct {
	Seed    uint64
	Edges   int
	Agents  int
	Records int64    // that a mailbox holds
	Losses  bool     // presence may lose what it knows
	Logs    bool     // the story has what edges log
	Tell    bool     // the story is wanted whether or not it fails
	Scenes  []string // that take part
	Steps   []Step
}

// shards is how many streams there are of each kind: more than one in some histories, as each costs what looks after
// it.
func (p *Plan) shards() int {
	if p.Seed%4 == 0 {
		return 2
	}
	return 1
}

// receipts are which ones the first agent asks for.
func (p *Plan) receipts() agora.Receipts {
	if slices.Contains(p.Scenes, "receipts") {
		return agora.Delivered | agora.Acked
	}
	return agora.Acked
}

// Step is one thing that happens, and how long nothing does after it.
type Step struct {
	Does string
	Dice uint64 // decides what the step leaves open, by what is so when it happens
	Then time.Duration
}

// MakePlan returns the plan of a seed, always the same one. It takes about half a minute.
func MakePlan(seed uint64) Plan { return planOf(seed, programme(seed)) }

// planOf is MakePlan, with other scenes.
func planOf(seed uint64, scenes []string) Plan {
	d := newDice(seed)
	p := Plan{Seed: seed, Edges: d.between(2, 3), Agents: d.between(3, 5), Records: 4096, Scenes: scenes}
	switch seed % 3 {
	case 1:
		p.Losses = true
	case 2:
		p.Records = 5 // retention passes the one who does not read at once
	}
	empty := &world{plan: &p}
	empty.scenes = newScenes(empty)
	defer empty.scenes.stop()
	names := slices.Sorted(maps.Keys(empty.doings()))
	_, usual := empty.scenes.steps()
	for range d.between(25, 70) {
		s := Step{Does: names[d.between(0, len(names)-1)], Dice: d.Uint64(), Then: d.millis(0, 30)}
		if d.between(0, 2) > 0 {
			s.Does = "speaks"
			if k := d.between(0, 2*len(usual)); k > 0 {
				s.Does = usual[k%len(usual)]
			}
		}
		switch d.between(0, 11) {
		case 0: // leases and graces end
			s.Then = d.millis(0, int(2*lease.Milliseconds()))
		case 1, 2: // what is under way arrives, or is tried again
			s.Then = d.millis(0, int(lease.Milliseconds()/4))
		}
		p.Steps = append(p.Steps, s)
	}
	return p
}

// dice decides what a plan leaves open.
type dice struct{ *rand.Rand }

func newDice(seed uint64) *dice { return &dice{rand.New(rand.NewPCG(seed, 0))} }

// between returns a number from least to most.
func (d *dice) between(least, most int) int { return least + d.IntN(most-least+1) }

func (d *dice) coin() bool { return d.IntN(2) == 0 }

// millis returns a time of so many milliseconds.
func (d *dice) millis(least, most int) time.Duration {
	return time.Duration(d.between(least, most)) * time.Millisecond
}

// some returns n numbers below 1025.
func (d *dice) some(n int) []int {
	all := make([]int, n)
	for k := range all {
		all[k] = d.between(0, 1<<10)
	}
	return all
}
