//go:build unix

package config

// modesTell says that the mode of a file tells who can read it.
const modesTell = true
