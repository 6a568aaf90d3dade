// Command oneseed writes an overlay for go build: a Go runtime in which one seed decides everything that is left to chance, so that
// a program that runs on one processor, under fake time, does the same again.
//
//	go test -tags oneseed -overlay "$(go run ./internal/oneseed bin/oneseed)" ./internal/simcluster
//
// It prints the path of the overlay. The runtime is that of the Go which runs it; where that has changed so that a patch
// does not fit, it fails.
package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// patch puts one text in place of another, which must stand in a file of the runtime so many times.
type patch struct {
	file, old, new string
	times          int
}

const seeded = `
// oneSeed decides everything that is left to chance, once there is one.
var oneSeed struct {
	given bool
	state uint64
}

//go:linkname setOneSeed
func setOneSeed(seed uint64) {
	systemstack(oneSeedMemory)
	oneSeed.given, oneSeed.state = true, seed
}

// oneSeedMemory has all that is allocated from now on lie in memory that was never used, from an address on that is
// always the same: pointers are keys of maps, and how much the process has used before depends on how many threads it
// happens to have. What is free is given away permanently.
func oneSeedMemory() {
	pp := getg().m.p.ptr()
	for gfget(pp) != nil {
	}
	pp.sudogcache, sched.sudogcache = pp.sudogbuf[:0], nil
	pp.deferpool, sched.deferpool = pp.deferpoolbuf[:0], nil
	stackcache_clear(pp.mcache)
	for order := range stackpool {
		pool := &stackpool[order].item
		lock(&pool.mu)
		for !pool.span.isEmpty() {
			stackpoolalloc(uint8(order))
		}
		unlock(&pool.mu)
	}
	lock(&stackLarge.lock)
	for i := range stackLarge.free {
		for free := &stackLarge.free[i]; !free.isEmpty(); {
			free.remove(free.first)
		}
	}
	unlock(&stackLarge.lock)
	pp.mcache.releaseAll()
	for i := range mheap_.central {
		c, sg := &mheap_.central[i].mcentral, mheap_.sweepgen
		for s := c.partialSwept(sg).pop(); s != nil; s = c.partialSwept(sg).pop() {
			c.fullSwept(sg).push(s)
		}
	}
	lock(&mheap_.lock)
	pp.pcache.flush(&mheap_.pages)
	for from := alignUp(mheap_.curArena.base, 32<<20); mheap_.curArena.base < from; {
		mheap_.grow(1)
	}
	for base, _ := mheap_.pages.alloc(1); base != 0; base, _ = mheap_.pages.alloc(1) {
	}
	unlock(&mheap_.lock)
}

// oneSeedCounts reports whether a goroutine of a bubble asks: what others take must not change what those get. What the
// runtime draws for itself, on its own stack or with a lock, depends on other threads.
//
//go:nosplit
func oneSeedCounts() bool {
	gp := getg()
	return oneSeed.given && gp.bubble != nil && gp == gp.m.curg && gp.m.locks == 0
}

//go:nosplit
func oneSeedNext() uint64 {
	oneSeed.state += 0xa0761d6478bd642f
	hi, lo := math.Mul64(oneSeed.state, oneSeed.state^0xe7037ed1a0b428db)
	return hi ^ lo
}

// rand32 is`

var patches = []patch{
	{"runtime/rand.go", "\n// rand32 is", seeded, 1},
	{"runtime/rand.go", "func rand() uint64 {\n", "func rand() uint64 {\n\tif oneSeedCounts() {\n\t\treturn oneSeedNext()\n\t}\n", 1},
	{"runtime/rand.go", "func cheaprand() uint32 {\n", "func cheaprand() uint32 {\n\tif oneSeedCounts() {\n\t\treturn uint32(oneSeedNext())\n\t}\n", 1},
	// The keys of hashes are made at the start.
	{"runtime/rand.go", "\tglobalRand.state.Init(*seed)\n", "\t*seed = [32]byte{1}\n\tglobalRand.state.Init(*seed)\n", 1},
	{"runtime/proc.go", "\tif pp.schedtick%61 == 0 && !sched.runq.empty() {\n", "\tif !oneSeed.given && pp.schedtick%61 == 0 && !sched.runq.empty() {\n", 1},
	{"runtime/sema.go", "func internal_sync_nanotime() int64 {\n", "func internal_sync_nanotime() int64 {\n\tif oneSeed.given {\n\t\treturn 0\n\t}\n", 1},
	// Which of two timers that are due at once goes first, the scheduler draws.
	{"runtime/time.go", "\t\t\tt.rand = cheaprand()\n", "\t\t\tif oneSeed.given {\n\t\t\t\tt.rand = uint32(oneSeedNext())\n\t\t\t} else {\n\t\t\t\tt.rand = cheaprand()\n\t\t\t}\n", 1},
	// Whether a type switch is cached must not change what a history draws: what the process did before it has its
	// caches, too.
	{"runtime/iface.go", "\tif cheaprand()&1023 != 0 {\n", "\tif oneSeed.given || cheaprand()&1023 != 0 {\n", 2},
	// Nobody is interrupted because of how long the machine takes.
	{"runtime/proc.go", "\t\tif retake(now) != 0 {\n", "\t\tif !oneSeed.given && retake(now) != 0 {\n", 1},
	// What a library makes once for a process must not change what a history draws. The order of a map is still drawn
	// for each walk.
	{"internal/runtime/maps/map.go", "uintptr(rand())", "1", 4},
	{"internal/sync/hashtriemap.go", "uintptr(runtime_rand())", "1", 1},
	{"unique/canonmap.go", "uintptr(runtime_rand())", "1", 1},
}

// files are those that are patched.
var files = []string{"runtime/rand.go", "runtime/proc.go", "runtime/sema.go", "runtime/time.go", "runtime/iface.go", "internal/runtime/maps/map.go", "internal/sync/hashtriemap.go", "unique/canonmap.go"}

func main() {
	if len(os.Args) != 2 {
		fmt.Fprintln(os.Stderr, "usage: oneseed FOLDER")
		os.Exit(2)
	}
	path, err := write(os.Args[1])
	if err != nil {
		fmt.Fprintln(os.Stderr, "oneseed:", err)
		os.Exit(1)
	}
	fmt.Println(path)
}

// write writes the overlay into a folder and returns its path.
func write(dir string) (string, error) {
	dir, err := filepath.Abs(dir)
	if err != nil {
		return "", err
	}
	out, err := exec.Command("go", "env", "GOROOT").Output()
	if err != nil {
		return "", fmt.Errorf("go env GOROOT: %w", err)
	}
	from := filepath.Join(strings.TrimSpace(string(out)), "src")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return "", err
	}
	replace := map[string]string{}
	for _, name := range files {
		text, err := patched(from, name)
		if err != nil {
			return "", err
		}
		to := filepath.Join(dir, filepath.Base(name)+".txt") // which no pattern of packages finds
		if err := os.WriteFile(to, text, 0o644); err != nil {
			return "", err
		}
		replace[filepath.Join(from, name)] = to
	}
	b, err := json.Marshal(map[string]any{"Replace": replace})
	if err != nil {
		return "", err
	}
	path := filepath.Join(dir, "overlay.json")
	return path, os.WriteFile(path, b, 0o644)
}

// patched returns a file of the runtime with its patches.
func patched(from, name string) ([]byte, error) {
	path := filepath.Join(from, name)
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(b)
	for _, p := range patches {
		if p.file != name {
			continue
		}
		if n := strings.Count(text, p.old); n != p.times {
			return nil, fmt.Errorf("%s has %d times, not %d, what is to be replaced: %q", path, n, p.times, p.old)
		}
		text = strings.ReplaceAll(text, p.old, p.new)
	}
	return []byte(text), nil
}
