//go:build !linux || race

package simcluster

// limitMemory limits what a player may take, where the system can and no race detector takes gigabytes of its own.
func limitMemory() error { return nil }
