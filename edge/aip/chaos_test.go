//go:build chaos

package aip_test

// adoptions is how many nodes of an edge that dies are adopted.
const adoptions = 100
