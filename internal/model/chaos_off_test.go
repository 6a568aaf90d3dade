//go:build !chaos

package model

// histories is how many a test plays: of fifteen in all hardly any lacks a kind of fault.
const histories = 5
