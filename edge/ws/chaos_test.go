//go:build chaos

package ws_test

// rounds is how often everything fails, and histories how many random ones are played: there is time for it.
const rounds, histories = 5, 150
