//go:build !race

package ws_test

import "testing"

// What an agent costs that is bound and says nothing: whatever it does not need is to be made when it does. Its
// subscription in the embedded log and its part of maps that grow are counted along.
func TestAnIdleAgentCostsLittle(t *testing.T) {
	const most = 8 << 10
	if each := idleCost(t, 1000); each > most {
		t.Errorf("an idle agent takes %.0f bytes of heap and stack, want %d at most", each, most)
	}
}
