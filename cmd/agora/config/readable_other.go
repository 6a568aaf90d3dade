//go:build !unix

package config

// modesTell says that the mode of a file does not tell who can read it: lists do, which Go does not read. A mode is
// 0666 of each file here.
const modesTell = false
