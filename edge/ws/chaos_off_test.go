//go:build !chaos

package ws_test

// histories is how many random ones are played; see chaos_test.go.
const histories = 15

// returns is how often a member comes back and joins again.
const returns = 40
