//go:build !chaos

package spaces

// schedules is how many random schedules are played: the same ones each time.
const schedules = 16

var firstSchedule = uint64(0)
