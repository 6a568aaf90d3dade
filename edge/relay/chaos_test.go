//go:build chaos

package relay_test

// addressees is to how many an agent writes that writes to many: there is time for them.
const addressees = 10_000
