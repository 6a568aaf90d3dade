//go:build !chaos

package aip_test

// adoptions is how many nodes of an edge that dies are adopted: more in make chaos.
const adoptions = 8
