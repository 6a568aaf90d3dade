//go:build !chaos

package broker

// What make test takes of them; see chaos_test.go.
const (
	histories = 2
	resumes   = 60
	takeovers = 20
)
