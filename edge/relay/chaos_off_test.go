//go:build !chaos

package relay_test

// addressees is to how many an agent writes that writes to many; see chaos_test.go.
const addressees = 1000
