//go:build chaos

package edge_test

// rounds is how often what is left to chance is tried: there is time for everything.
const rounds = 1000
