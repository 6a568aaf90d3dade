//go:build chaos

package spaces

import "math/rand/v2"

// schedules is how many random schedules are played: other ones each time.
const schedules = 500

var firstSchedule = rand.Uint64N(1 << 40)
