//go:build chaos

package reliability

// chaos says that there is time for everything: make chaos.
const chaos = true

// rounds is how often the whole matrix is played, on one cluster.
const rounds = 3
