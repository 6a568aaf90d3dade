//go:build chaos

package demux_test

import "math/rand/v2"

// histories is how many random histories are played: other ones each time.
const histories = 40

var firstHistory = rand.Uint64N(1 << 40)
