package verify

import (
	"context"
	"errors"
	"io"
	"slices"
	"testing"
)

func newTestFlow() *Flow {
	return NewFlow(newTestTally(), "alice to bob", StreamKinds{"chunk", "stream"})
}

func TestAFlowFindsWhatIsNotWhole(t *testing.T) {
	cut := errors.New("STREAM_ABORTED")
	for name, c := range map[string]struct {
		come    []int // chunks, of 3
		ending  bool  // the end was sent
		end     error // that the receiver saw
		outcome Outcome
		early   bool // the receiver's end is before the result
		gap     bool
		want    []string
	}{
		"whole":                             {[]int{0, 1, 2}, true, io.EOF, Stored, false, false, nil},
		"whole, receipt later":              {[]int{0, 1, 2}, true, io.EOF, Stored, true, false, nil},
		"whole, receipt lost":               {[]int{0, 1, 2}, true, io.EOF, Unknown, true, false, nil},
		"a hole":                            {[]int{0, 2}, true, io.EOF, Stored, false, false, []string{Lost}},
		"a hole that is told":               {[]int{0, 2}, true, io.EOF, Stored, false, true, nil},
		"the last is missing":               {[]int{0, 1}, true, io.EOF, Stored, false, false, []string{Lost}},
		"one twice":                         {[]int{0, 1, 1, 2}, true, io.EOF, Stored, false, false, []string{Duplicated}},
		"swapped":                           {[]int{1, 0, 2}, true, io.EOF, Stored, false, false, []string{Lost, Reordered}},
		"aborted":                           {[]int{0, 1}, false, cut, Unknown, false, false, nil},
		"given up":                          {[]int{0, 1}, false, cut, Refused, true, false, nil},
		"an end never sent":                 {[]int{0, 1}, false, io.EOF, Unknown, false, false, []string{Truncated}},
		"aborted, though whole":             {[]int{0, 1, 2}, true, cut, Stored, false, false, []string{Broken}},
		"aborted, though whole, told first": {[]int{0, 1, 2}, true, cut, Stored, true, false, []string{Broken}},
		"aborted at a gap":                  {[]int{0}, true, cut, Stored, true, true, nil},
		"no end":                            {[]int{0, 1, 2}, true, context.Canceled, Stored, false, false, []string{Broken}},
	} {
		t.Run(name, func(t *testing.T) {
			f := newTestFlow()
			var chunks []string
			for range 3 {
				chunks = append(chunks, f.Write())
			}
			if c.ending {
				f.End()
			}
			g := &Gaps{}
			r := f.Begin("bob", g)
			if c.gap {
				g.Add(1, 2)
			}
			if !c.early {
				f.Set(c.outcome)
			}
			for _, i := range c.come {
				r.Chunk(chunks[i])
			}
			if c.end == context.Canceled {
				r.Never()
			} else {
				r.Over(c.end)
			}
			if c.early {
				f.Set(c.outcome)
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
	f := newTestFlow()
	text := f.Write()
	r := f.Begin("bob", &Gaps{})
	r.Chunk(text[1:])
	r.Chunk(text[:len(text)-1])
	if f.tally.total != 2 || f.tally.listed[0].Kind != Altered {
		t.Fatalf("violations = %v, want two alterations", f.tally.listed)
	}
}
