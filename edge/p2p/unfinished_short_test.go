//go:build !chaos

package p2p_test

// strangersAtOnce is how many idle peers nobody knows.
const strangersAtOnce = 600
