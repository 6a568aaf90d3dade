//go:build chaos

package reliability

// chaos says that there is time for everything: make chaos.
const chaos = true
