package main

import "testing"

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
		{"a few more", []int64{10000, 10000, 11000, 11000}, []int64{0, 0, 0, 0}, []bool{false, true, false, false}},
		{"many more", []int64{10000, 10000, 12000, 12000}, []int64{0, 0, 0, 0}, []bool{false, true, false, true}},
		{"all gone", []int64{10000, 10000, 0, 0}, []int64{0, 0, 0, 0}, []bool{false, true, false, true}},
	} {
		var one tidier
		var frames int64
		for k, n := range c.connections {
			frames += c.frames[k]
			if tidy := one.look(n, frames); tidy != c.tidied[k] {
				t.Errorf("%s: look %d is %v, want %v", c.about, k, tidy, c.tidied[k])
			}
		}
	}
}
