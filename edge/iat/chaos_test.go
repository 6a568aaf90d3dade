//go:build chaos

package iat_test

// twice is how often an approval is decided by two at one instant: there is time for everything.
const twice = 1000
