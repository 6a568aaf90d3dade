package agoratest

import "testing"

// Ports returns the first of n loopback ports, one behind the other, that nobody has at the moment, and that no
// connection and no other test process will be given.
func Ports(t testing.TB, n int) (first int) {
	t.Helper()
	for count, last := 0, 0; ; {
		port, err := steadyPort()
		if err != nil {
			t.Fatal(err)
		}
		if port != last+1 {
			count, first = 0, port
		}
		if count, last = count+1, port; count == n {
			return first
		}
	}
}
