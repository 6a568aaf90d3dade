//go:build sabotage

package guard

import (
	"os"
	"slices"
	"strings"
	"time"
)

// For tests only: AGORA_SABOTAGE names the protections to leave out, comma-separated. What each is
// stands in guard.go. AGORA_SABOTAGE_CLOCK, as in "1h" or "-1h", is added to the machine's clock.
var (
	left = strings.FieldsFunc(os.Getenv("AGORA_SABOTAGE"), func(r rune) bool { return r == ',' })

	Nudges    = with("nudge")
	Audits    = with("audit")
	Gaps      = with("gap")
	Cursors   = with("cursor")
	Retries   = with("retry")
	IDs       = with("msgid")
	Numbers   = with("number")
	Names     = with("name")
	Order     = with("order")
	Fences    = with("fence")
	Epochs    = with("epoch")
	Settling  = with("settle")
	Gone      = with("gone")
	Leases    = with("lease")
	Draining  = with("drain")
	Asserts   = with("assert")
	Looks     = with("look")
	Whole     = with("whole")
	Calls     = with("call")
	Holds     = with("hold")
	Once      = with("once")
	First     = with("first")
	Boxes     = with("box")
	Turns     = with("turn")
	Acts      = with("act")
	Rejoins   = with("rejoin")
	Addresses = with("address")
	Adoption  = with("adopt")
	Clock     = with("clock")

	ahead = skew()
)

// known are the names that with was asked for.
var known []string

// with reports whether a protection is to be kept.
func with(name string) bool {
	known = append(known, name)
	return !slices.Contains(left, name)
}

// A name that is not known is a mistake of the test.
func init() {
	for _, name := range left {
		if !slices.Contains(known, name) {
			panic("AGORA_SABOTAGE: no protection is called " + name)
		}
	}
}

func skew() time.Duration {
	s := os.Getenv("AGORA_SABOTAGE_CLOCK")
	if s == "" {
		return 0
	}
	d, err := time.ParseDuration(s)
	if err != nil {
		panic("AGORA_SABOTAGE_CLOCK: " + err.Error())
	}
	return d
}

// WallClock is the machine's clock, moved.
func WallClock() time.Time { return time.Now().Add(ahead) }
