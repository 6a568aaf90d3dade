//go:build !chaos

package ws_test

// rounds is how often everything fails, and histories how many random ones are played; see chaos_test.go.
const rounds, histories = 1, 15
