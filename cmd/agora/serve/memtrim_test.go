package serve

import (
	"testing"
	"time"
)

func TestMemoryIsGivenBackOnceACrowdHasComeAndIsQuiet(t *testing.T) {
	for _, c := range []struct {
		about       string
		connections []int64 // at each look
		frames      []int64 // that came since the look before
		tidied      []bool
	}{
		{"few", []int64{100, 100, 100}, []int64{0, 0, 0}, []bool{false, false, false}},
		{"a crowd, once it is there", []int64{5000, 10000, 10050, 10050}, []int64{0, 0, 0, 0}, []bool{false, false, true, false}},
		{"a crowd that talks, once it stops", []int64{10000, 10000, 10000}, []int64{9000, 9000, 20}, []bool{false, false, true}},
		{"a crowd that is told signs of life", []int64{15000, 15000, 15000}, []int64{0, 1100, 2300}, []bool{false, true, false}},
		{"a few more", []int64{10000, 10000, 11000, 11000}, []int64{0, 0, 0, 0}, []bool{false, true, false, false}},
		{"many more", []int64{10000, 10000, 12000, 12000}, []int64{0, 0, 0, 0}, []bool{false, true, false, true}},
		{"all gone", []int64{10000, 10000, 0, 0}, []int64{0, 0, 0, 0}, []bool{false, true, false, true}},
	} {
		var one trimmer
		var frames int64
		for k, n := range c.connections {
			frames += c.frames[k]
			now := edgeState{connections: n, frames: frames, held: 100 << 20}
			tidy := one.look(now)
			if tidy != c.tidied[k] {
				t.Errorf("%s: look %d is %v, want %v", c.about, k, tidy, c.tidied[k])
			}
			if tidy {
				one.done(now, 0)
			}
		}
	}
}

func TestMemoryIsGivenBackOnceGarbageHasGathered(t *testing.T) {
	const mb, cost = 1 << 20, 100 * time.Millisecond
	type look struct {
		after  time.Duration
		held   int64
		frames int64
		tidy   bool
	}
	for _, c := range []struct {
		about       string
		connections int64
		looks       []look
	}{
		{"none gathers", 10000, []look{{2 * time.Minute, 100 * mb, 0, false}, {time.Hour, 106 * mb, 0, false}}},
		{"some has", 10000, []look{{2 * time.Minute, 107 * mb, 0, true}}},
		{"it gathers at once, and collecting is dear", 10000, []look{
			{10 * time.Second, 110 * mb, 0, false}, {15 * time.Second, 120 * mb, 0, false}, {10 * time.Second, 120 * mb, 0, true}, {10 * time.Second, 120 * mb, 0, false},
		}},
		{"it gathers while all talk", 10000, []look{{2 * time.Minute, 120 * mb, 50000, false}, {2 * time.Second, 120 * mb, 0, true}}},
		{"few agents", 100, []look{{2 * time.Minute, 200 * mb, 0, false}}},
	} {
		var one trimmer
		now := edgeState{at: time.Second, connections: c.connections, held: 100 * mb}
		one.look(now)
		if one.look(now) {
			one.done(now, cost)
		}
		for k, l := range c.looks {
			now.at, now.held, now.frames = now.at+l.after, l.held, now.frames+l.frames
			tidy := one.look(now)
			if tidy != l.tidy {
				t.Errorf("%s: look %d is %v, want %v", c.about, k, tidy, l.tidy)
			}
			if tidy {
				now.held = 100 * mb
				one.done(now, cost)
			}
		}
	}
}

func TestManyComeWhileConnectionsGrowByAGoodPart(t *testing.T) {
	for _, c := range []struct {
		about       string
		connections []int64 // at each look
		coming      []bool
	}{
		{"few agents", []int64{0, 100, 400}, []bool{false, false, false}},
		{"a crowd, until it is there", []int64{0, 1500, 14000, 14500, 14600, 14600}, []bool{false, true, true, true, false, false}},
		{"a crowd that goes", []int64{14000, 10000, 0}, []bool{true, false, false}},
	} {
		var one trimmer
		for k, n := range c.connections {
			if one.look(edgeState{connections: n}); one.coming != c.coming[k] {
				t.Errorf("%s: at look %d many come: %v, want %v", c.about, k, one.coming, c.coming[k])
			}
		}
	}
}
