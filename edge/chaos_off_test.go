//go:build !chaos

package edge_test

// rounds is how often what is left to chance is tried; see chaos_test.go.
const rounds = 50
