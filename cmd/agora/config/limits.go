package config

import (
	"github.com/spf13/pflag"
)

// limitSettings bound what one agent may send, have and say of itself.
type limitSettings struct {
	frame, body, card   size
	depth, name, errors int
	streams, spaces     int
	rate, bytes, burst  float64
}

func (s *limitSettings) flags(f *pflag.FlagSet) {
	s.frame, s.body, s.card = 1<<20, 1<<20, 256<<10
	f.Var(&s.frame, "limits.frame", "size of a frame")
	f.Var(&s.body, "limits.body", "size of the body of an HTTP request")
	f.Var(&s.card, "limits.card", "bytes of what an agent says of itself, schemas of its skills and tools included")
	f.IntVar(&s.depth, "limits.depth", 64, "nesting of a frame, and of the JSON of an HTTP request; what an agent says by any door has one level less, as a frame stands around it")
	f.IntVar(&s.name, "limits.name", 256, "characters of a stream id, frame id, event id or name")
	f.IntVar(&s.errors, "limits.errors", 100, "errors that a connection may cause in 10 s")
	f.IntVar(&s.streams, "limits.streams", 1024, "open streams of one agent")
	f.IntVar(&s.spaces, "limits.spaces", 256, "spaces of one agent")
	f.Float64Var(&s.rate, "limits.rate", 0, "messages per second of one agent; 0 for no limit")
	f.Float64Var(&s.bytes, "limits.bytes", 0, "bytes per second of one agent; 0 for no limit")
	f.Float64Var(&s.burst, "limits.burst", 1, "seconds' worth of both that may come at once")
}

func (s *limitSettings) faults() []error {
	all := atLeastOne(map[string]int64{
		"limits.frame": int64(s.frame), "limits.body": int64(s.body), "limits.depth": int64(s.depth), "limits.name": int64(s.name),
		"limits.errors": int64(s.errors), "limits.streams": int64(s.streams), "limits.spaces": int64(s.spaces),
	})
	return append(append(all, notNegative(map[string]float64{"limits.rate": s.rate, "limits.bytes": s.bytes})...),
		unless(s.burst > 0, "limits.burst must be more than nothing"),
		unless(s.frame <= 7<<20, "limits.frame can't be more than 7MiB: a frame must fit one record of the log"),
		unless(s.body <= 64<<20, "limits.body can't be more than 64MiB"),
		unless(s.card >= 1<<10 && s.card <= 1<<20, "limits.card must be 1KiB to 1MiB"),
	)
}
