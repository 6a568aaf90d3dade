package config

import (
	"time"

	"github.com/spf13/pflag"
)

// spaceSettings are those of spaces.
type spaceSettings struct {
	autoCreate              bool
	maxMembers, wholeRoster int
	deltaThreshold          size
	emptyGrace              time.Duration
}

func (s *spaceSettings) flags(f *pflag.FlagSet) {
	f.BoolVar(&s.autoCreate, "spaces.auto-create", true, "the first join makes a public space")
	f.IntVar(&s.maxMembers, "spaces.max-members", 4096, "members of a space")
	f.IntVar(&s.wholeRoster, "spaces.whole-roster", 256, "members of a space up to which every change of its roster names all of them")
	s.deltaThreshold = 16 << 10
	f.Var(&s.deltaThreshold, "spaces.delta-threshold", "text of an event beyond which it goes out in deltas")
	f.DurationVar(&s.emptyGrace, "spaces.empty-grace", time.Minute, "how long an empty public space stays")
}

func (s *spaceSettings) faults() []error {
	return append(positive(map[string]time.Duration{"spaces.empty-grace": s.emptyGrace}), atLeastOne(map[string]int64{
		"spaces.max-members": int64(s.maxMembers), "spaces.whole-roster": int64(s.wholeRoster), "spaces.delta-threshold": int64(s.deltaThreshold),
	})...)
}
