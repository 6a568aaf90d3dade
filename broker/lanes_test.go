package broker

import "testing"

// Where records come alone, each would have the retrier woken.
func TestTheRetrierIsWokenOnceForAllLanesThatComeMeanwhile(t *testing.T) {
	var s retrier
	s.init()
	first, second := new(Lane), new(Lane)
	if !s.add(first) {
		t.Error("asleep, the retrier is not woken for the first lane")
	}
	if s.add(second) {
		t.Error("awake, it is woken for the second lane")
	}
	s.remove(first)
	if s.rest() {
		t.Error("it sleeps while a lane has something in hand")
	}
	if s.add(first) {
		t.Error("it is woken for a lane that comes again")
	}
	s.remove(first)
	s.remove(second)
	if !s.rest() {
		t.Error("it does not sleep without lanes")
	}
	if !s.add(second) {
		t.Error("asleep again, it is not woken")
	}
}
