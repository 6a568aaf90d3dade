//go:build !(oneseed && linux)

package simcluster

// limitMemory limits what a player may take, where that is exact: a race detector takes whatever it takes.
func limitMemory() error { return nil }
