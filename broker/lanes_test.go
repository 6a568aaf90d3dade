package broker

import "testing"

// Where records come alone, each would have the retrier woken.
func TestTheSweeperIsWokenOnceForAllLanesThatComeMeanwhile(t *testing.T) {
	s := laneSet{m: map[*Lane]struct{}{}}
	first, second := new(Lane), new(Lane)
	if !s.add(first) {
		t.Error("asleep, the sweeper is not woken for the first lane")
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
