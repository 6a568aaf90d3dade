package main

import (
	"os"
	"runtime/debug"
	"runtime/metrics"
	"testing"
)

func garbagePercent() uint64 {
	s := []metrics.Sample{{Name: "/gc/gogc:percent"}}
	metrics.Read(s)
	return s[0].Value.Uint64()
}

func TestGarbageIsCollectedSoonerWhileManyCome(t *testing.T) {
	t.Setenv("GOGC", "")
	was := debug.SetGCPercent(usualGarbage)
	defer debug.SetGCPercent(was)
	for _, c := range []struct {
		sooner bool
		want   uint64
	}{{true, comingGarbage}, {false, usualGarbage}} {
		if collectSooner(c.sooner); garbagePercent() != c.want {
			t.Errorf("sooner is %v: %d %% of garbage, want %d", c.sooner, garbagePercent(), c.want)
		}
	}
}

func TestWhenGarbageIsCollectedIsTheOperatorsWordFirst(t *testing.T) {
	t.Setenv("GOGC", "70")
	was := debug.SetGCPercent(70)
	defer debug.SetGCPercent(was)
	for _, sooner := range []bool{true, false} {
		if collectSooner(sooner); garbagePercent() != 70 {
			t.Errorf("sooner is %v: %d %% of garbage with GOGC=%s", sooner, garbagePercent(), os.Getenv("GOGC"))
		}
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
	if freed > full-32<<20 || spent <= cpu {
		t.Errorf("%d bytes are held with 64 MiB less, %d before; it took %v", freed, full, spent-cpu)
	}
}
