package edge

import "testing"

// A pong that is waited for is for Pong alone, or nobody would learn what it confirms.
func TestAPongThatConfirmsSomethingIsNotIdle(t *testing.T) {
	var s Session
	s.ping = 3
	if !s.IdlePong(3) || s.heard.Load() == 0 {
		t.Error("a pong that nobody waits for is no sign of life")
	}
	if s.IdlePong(3 | probeMark) {
		t.Error("the answer to a probe was taken for an idle pong")
	}
	if s.asked = true; s.IdlePong(3) {
		t.Error("the pong that confirms was taken for an idle one")
	}
}
