//go:build chaos

package ws_test

// histories is how many random ones are played: there is time for it.
const histories = 150

// returns is how often a member comes back and joins again.
const returns = 1000
