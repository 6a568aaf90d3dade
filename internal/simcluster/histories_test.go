package simcluster

import (
	"cmp"
	"fmt"
	"maps"
	"os"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"
)

// What the environment says of a run: make simulate sets it.
const (
	forVariable  = "AGORA_SIMULATE_FOR"  // play so long, as 60s or 1h
	seedVariable = "AGORA_SIMULATE_SEED" // play this one, and tell it
)

// howMany is how many histories a run of the tests plays, beside what the environment asks for: as many as two
// processors play in half a minute (make check) and in a minute (make test), and hardly any where they are not exact,
// which is for those who look for data races.
func howMany() uint64 {
	switch {
	case exact && testing.Short():
		return 300
	case exact:
		return 500
	case testing.Short():
		return 4
	}
	return 12
}

// TestHistories plays histories from the first seed on, or as the environment says. What is wrong with one is told as
// short as it can be.
func TestHistories(t *testing.T) {
	if seed := os.Getenv(seedVariable); seed != "" {
		tell(t, seed)
		return
	}
	n, seed := howMany(), uint64(0)
	long := time.Duration(0)
	if s := os.Getenv(forVariable); s != "" {
		var err error
		if long, err = time.ParseDuration(s); err != nil {
			t.Fatalf("%s: %v", forVariable, err)
		}
		n, seed = 1<<62, uint64(time.Now().Unix())*1_000_000
	}
	s := simulate(nil, seed, n, long, mostFailed)
	t.Log(s.report())
	for _, r := range s.failed {
		t.Error(s.story(r))
	}
	if long == 0 && (s.seen.Receipted == 0 || s.seen.Arrived == 0) {
		t.Error("nothing was receipted, or nothing arrived: the histories show nothing")
	}
	if exact && long == 0 {
		for seed := range uint64(5) {
			playsAgain(t, seed)
		}
	}
}

// playsAgain plays a history in two processes, and expects the same story of both.
func playsAgain(t *testing.T, seed uint64) {
	p := Plan{Seed: seed, Tell: true}
	first, second := playOnce(nil, p).Story, playOnce([]string{"OTHER=" + strings.Repeat("x", 1000)}, p).Story
	for k := range max(len(first), len(second)) {
		if k >= len(first) || k >= len(second) || first[k] != second[k] {
			t.Errorf("the history of seed %d is another when it is played again: from line %d on\n%q\n%q", seed, k, first[min(k, len(first)):], second[min(k, len(second)):])
			return
		}
	}
}

// tell plays one history and tells it.
func tell(t *testing.T, seed string) {
	n, err := strconv.ParseUint(seed, 10, 64)
	if err != nil {
		t.Fatalf("%s: %v", seedVariable, err)
	}
	r := playOnce(nil, Plan{Seed: n, Tell: true})
	t.Log(strings.Join(r.Story, "\n"))
	for _, f := range r.Failures {
		t.Error(f)
	}
}

// run is what many histories came to.
type run struct {
	env    []string
	played int
	seen   Tally
	steps  map[string]int
	took   time.Duration // simulated
	began  time.Time
	failed []Result // the first few
}

// mostFailed is how many histories of a test may fail before it stops.
const mostFailed = 3

// simulate plays n histories from a seed on, no more after a time where that is not 0, and none once so many have
// failed.
func simulate(env []string, seed, n uint64, long time.Duration, most int) *run {
	s := &run{env: env, steps: map[string]int{}, began: time.Now()}
	left := n
	next := func() (Plan, bool) {
		if left == 0 || len(s.failed) >= most || long > 0 && time.Since(s.began) > long {
			return Plan{}, false
		}
		left--
		seed++
		return Plan{Seed: seed - 1}, true
	}
	playAll(runtime.GOMAXPROCS(0), env, next, s.take)
	return s
}

func (s *run) take(r Result) {
	s.played++
	s.took += r.Took
	s.seen.add(r.Seen)
	for what, n := range r.Seen.Faults {
		s.steps[what] += n
	}
	if len(r.Failures) > 0 {
		s.failed = append(s.failed, r)
	}
}

func (t *Tally) add(o Tally) {
	t.Sessions += o.Sessions
	t.Said += o.Said
	t.Receipted += o.Receipted
	t.Arrived += o.Arrived
	t.Again += o.Again
	t.Aborts += o.Aborts
	t.Gaps += o.Gaps
}

// report says how much was played and seen.
func (s *run) report() string {
	var b strings.Builder
	real := time.Since(s.began)
	fmt.Fprintf(&b, "%d histories, %v simulated in %v: %.1f histories a second, %.0f times as fast as the clock\n",
		s.played, s.took.Round(time.Second), real.Round(time.Millisecond), float64(s.played)/real.Seconds(), s.took.Seconds()/real.Seconds())
	fmt.Fprintf(&b, "%d sessions, %d messages said, %d receipted, %d arrived, %d of them again and marked; %d streams aborted, %d gaps told\n",
		s.seen.Sessions, s.seen.Said, s.seen.Receipted, s.seen.Arrived, s.seen.Again, s.seen.Aborts, s.seen.Gaps)
	names := slices.SortedFunc(maps.Keys(s.steps), func(a, b string) int { return cmp.Or(s.steps[b]-s.steps[a], cmp.Compare(a, b)) })
	for _, name := range names {
		fmt.Fprintf(&b, "  %7d  %s\n", s.steps[name], name)
	}
	return b.String()
}

// shrinking is how long a story may take to be made shorter.
const shrinking = time.Minute

// mostLines is how many lines of a story are told: its beginning and its end.
const mostLines = 400

// story tells a history that failed, as short as it can be.
func (s *run) story(r Result) string {
	steps := len(r.Plan.Steps)
	r = shrink(s.env, r, shrinking)
	lines := r.Story
	if len(lines) > mostLines {
		lines = slices.Concat(lines[:mostLines/2], []string{fmt.Sprintf("… %d lines …", len(lines)-mostLines)}, lines[len(lines)-mostLines/2:])
	}
	var b strings.Builder
	fmt.Fprintf(&b, "the history of seed %d fails (make simulate SEED=%d plays it again). Of its %d steps, %d are enough:\n", r.Plan.Seed, r.Plan.Seed, steps, len(r.Plan.Steps))
	for _, step := range r.Plan.Steps {
		fmt.Fprintf(&b, "  %s, then %v\n", step.Does, step.Then)
	}
	fmt.Fprintf(&b, "%s\n%s", strings.Join(r.Failures, "\n"), strings.Join(lines, "\n"))
	return b.String()
}
