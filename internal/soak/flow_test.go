package soak

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
)

func TestAFlowFindsWhatIsNotWhole(t *testing.T) {
	cut := errors.New("STREAM_ABORTED")
	for name, c := range map[string]struct {
		come   []int // chunks, of 3
		ending bool  // the end was sent
		end    error // that the receiver saw
		result result
		early  bool // the receiver's end is before the result
		gap    bool
		want   []string
	}{
		"whole":                             {[]int{0, 1, 2}, true, io.EOF, stored, false, false, nil},
		"whole, receipt later":              {[]int{0, 1, 2}, true, io.EOF, stored, true, false, nil},
		"whole, receipt lost":               {[]int{0, 1, 2}, true, io.EOF, unknown, true, false, nil},
		"a hole":                            {[]int{0, 2}, true, io.EOF, stored, false, false, []string{Lost}},
		"a hole that is told":               {[]int{0, 2}, true, io.EOF, stored, false, true, nil},
		"the last is missing":               {[]int{0, 1}, true, io.EOF, stored, false, false, []string{Lost}},
		"one twice":                         {[]int{0, 1, 1, 2}, true, io.EOF, stored, false, false, []string{Duplicated}},
		"swapped":                           {[]int{1, 0, 2}, true, io.EOF, stored, false, false, []string{Lost, Reordered}},
		"aborted":                           {[]int{0, 1}, false, cut, unknown, false, false, nil},
		"given up":                          {[]int{0, 1}, false, cut, refused, true, false, nil},
		"an end never sent":                 {[]int{0, 1}, false, io.EOF, unknown, false, false, []string{Truncated}},
		"aborted, though whole":             {[]int{0, 1, 2}, true, cut, stored, false, false, []string{Broken}},
		"aborted, though whole, told first": {[]int{0, 1, 2}, true, cut, stored, true, false, []string{Broken}},
		"aborted at a gap":                  {[]int{0}, true, cut, stored, true, true, nil},
		"no end":                            {[]int{0, 1, 2}, true, context.Canceled, stored, false, false, []string{Broken}},
	} {
		t.Run(name, func(t *testing.T) {
			f := &flow{tally: newTally(), name: "alice to bob"}
			var chunks []string
			for range 3 {
				chunks = append(chunks, f.write())
			}
			if c.ending {
				f.end()
			}
			g := &gaps{}
			r := f.begin("bob", g)
			if c.gap {
				g.add(1, 2)
			}
			if !c.early {
				f.set(c.result)
			}
			for _, i := range c.come {
				r.chunk(chunks[i])
			}
			if c.end == context.Canceled {
				r.never()
			} else {
				r.over(c.end)
			}
			if c.early {
				f.set(c.result)
			}
			var got []string
			for _, v := range f.tally.listed {
				got = append(got, v.Kind)
			}
			if !slices.Equal(got, c.want) {
				t.Errorf("violations = %v, want %v", f.tally.listed, c.want)
			}
		})
	}
}

func TestAnAlteredChunkIsFound(t *testing.T) {
	f := &flow{tally: newTally()}
	text := f.write()
	r := f.begin("bob", &gaps{})
	r.chunk(text[1:])
	r.chunk(text[:len(text)-1])
	if f.tally.total != 2 || f.tally.listed[0].Kind != Altered {
		t.Fatalf("violations = %v, want two alterations", f.tally.listed)
	}
}
