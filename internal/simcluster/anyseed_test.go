//go:build !oneseed

package simcluster

func setOneSeed(uint64) {}

// exact tells that a history is the same whenever it is played.
const exact = false
