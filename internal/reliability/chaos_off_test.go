//go:build !chaos

package reliability

// chaos says that there is time for everything; see chaos_test.go.
const chaos = false

// rounds is how often the whole matrix is played, on one cluster.
const rounds = 1
