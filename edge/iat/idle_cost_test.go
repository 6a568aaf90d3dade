//go:build !race

package iat_test

import "testing"

// What a downlink costs that is bound and says nothing but signs of life. The server's own buffers are 10 KiB of the
// first, and 4 KiB of the second.
func TestAnIdleDownlinkCostsLittle(t *testing.T) {
	for _, c := range []struct {
		name   string
		shared bool
		most   float64
	}{{"HTTP1", false, 32 << 10}, {"HTTP2", true, 20 << 10}} {
		t.Run(c.name, func(t *testing.T) {
			if each := idleDownlinkCost(t, 1000, c.shared); each > c.most {
				t.Errorf("an idle downlink takes %.0f bytes of heap and stack, want %.0f at most", each, c.most)
			}
		})
	}
}
