//go:build !race

package directory_test

import (
	"runtime"
	"testing"
)

// live returns the bytes that are in use.
func live() int64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return int64(m.HeapAlloc)
}

func TestTenThousandAgentsTakeTenMegabytes(t *testing.T) {
	if testing.Short() {
		t.Skip("registers ten thousand agents")
	}
	const most = 10_000_000
	w, d := crowd(t)
	before := live()
	if s := d.Stats(); s.Agents != 0 || s.Bytes != 0 {
		t.Errorf("%+v before anybody has asked, want nothing", s)
	}
	if _, err := d.Get(t.Context(), w.tenant, "agent-00000"); err != nil {
		t.Fatal(err)
	}
	took := live() - before
	t.Logf("%d bytes, of which it knows %d", took, d.Stats().Bytes)
	if took > most {
		t.Errorf("a directory of 10,000 agents takes %d bytes, want %d at most", took, most)
	}
}
