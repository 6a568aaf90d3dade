//go:build oneseed

// A function of the tests has its body in the runtime.
