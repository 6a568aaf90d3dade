//go:build !oneseed

package simcluster

func setOneSeed(uint64) {}

func limitMemory() {} // what looks for data races takes addresses without end

// exact tells that a history is the same whenever it is played.
const exact = false
