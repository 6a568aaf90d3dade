//go:build !chaos

package ws_test

// histories is how many random ones are played; see chaos_test.go.
const histories = 15
