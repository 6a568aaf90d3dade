//go:build !chaos

package demux_test

// histories is how many random histories are played: the same ones each time.
const histories = 4

var firstHistory = uint64(0)
