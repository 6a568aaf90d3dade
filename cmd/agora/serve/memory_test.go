package serve

import (
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func garbagePercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestGarbageIsCollectedSoonerWhileManyComeToMuch(t *testing.T) {
	for _, c := range []struct {
		live int64
		want int
	}{{0, usualGarbage}, {4 << 20, usualGarbage}, {8 << 20, 50}, {16 << 20, leastGarbage}, {8 << 30, leastGarbage}} {
		if got := garbageWhileComing(c.live); got != c.want {
			t.Errorf("with %d bytes in use there may be %d %% of garbage, want %d", c.live, got, c.want)
		}
	}
}

func TestGarbageIsCollectedLaterWhileAgentsTalkToAnEdgeThatHoldsLittle(t *testing.T) {
	for _, c := range []struct {
		state trimmer
		live  int64
		want  int
	}{
		{trimmer{talks: true}, 0, mostGarbage}, {trimmer{talks: true}, 12 << 20, 400}, {trimmer{talks: true}, 20 << 20, 200},
		{trimmer{talks: true}, 48 << 20, usualGarbage}, {trimmer{talks: true}, 8 << 30, usualGarbage},
		{trimmer{}, 12 << 20, usualGarbage}, {trimmer{talks: true, coming: true}, 64 << 20, leastGarbage},
		{trimmer{last: trimWorth}, 24 << 20, leastGarbage}, {trimmer{last: trimWorth}, 64 << 20, usualGarbage}, {trimmer{last: trimWorth, talks: true}, 24 << 20, 200},
	} {
		if got := c.state.garbage(c.live); got != c.want {
			t.Errorf("with %d bytes in use there may be %d %% of garbage, want %d", c.live, got, c.want)
		}
	}
}

func TestWhenGarbageIsCollectedIsTheOperatorsWordFirst(t *testing.T) {
	was := debug.SetGCPercent(70)
	defer debug.SetGCPercent(was)
	t.Setenv("GOGC", "70")
	if collectAt(leastGarbage); garbagePercent() != 70 {
		t.Errorf("%d %% of garbage with GOGC=70", garbagePercent())
	}
	t.Setenv("GOGC", "")
	if collectAt(leastGarbage); garbagePercent() != leastGarbage {
		t.Errorf("%d %% of garbage without GOGC, want %d", garbagePercent(), leastGarbage)
	}
}

func TestWhatMemoryTakesIsRead(t *testing.T) {
	use := newMemoryUse()
	debug.FreeOSMemory() // or the room may come out of what other tests have left
	held, cpu := use.read()
	if held < 1<<20 {
		t.Errorf("%d bytes are held", held)
	}
	room := make([]byte, 64<<20)
	for i := 0; i < len(room); i += 4096 {
		room[i] = 1
	}
	full, _ := use.read()
	if room = nil; full < held+32<<20 {
		t.Errorf("%d bytes are held with 64 MiB more, %d before", full, held)
	}
	debug.FreeOSMemory()
	freed, spent := use.read()
	if live := use.live(); live < 1<<16 || live > freed {
		t.Errorf("%d bytes are in use of %d", live, freed)
	}
	if freed > full-32<<20 || spent <= cpu {
		t.Errorf("%d bytes are held with 64 MiB less, %d before; it took %v", freed, full, spent-cpu)
	}
}
