//go:build !chaos

package iat_test

// twice is how often an approval is decided by two at one instant; see chaos_test.go.
const twice = 40
