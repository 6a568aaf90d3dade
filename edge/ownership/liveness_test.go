package ownership

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

func TestAllWhoWaitForAHolderShareALookThatBeginsAfterTheyCame(t *testing.T) {
	h, other := presence.Holder{Edge: "a", Incarnation: "1"}, presence.Holder{Edge: "b", Incarnation: "1"}
	var o livenessChecks
	looks := 0
	begin := func(presence.Holder, *livenessCheck) { looks++ }
	first := o.join(h, begin)
	for range 1000 {
		if o.join(h, begin) != first {
			t.Fatal("another look, though the first one has not begun")
		}
	}
	if o.join(other, begin) == first || looks != 2 {
		t.Errorf("%d looks at two holders, want one at each", looks)
	}
	o.begin(h)
	if o.join(h, begin) == first {
		t.Error("who came when it had begun is told what it saw: that may be from before its claim")
	}
}

func TestWhoIsMissedIsNotAskedForAMoment(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := presence.Holder{Edge: "a", Incarnation: "1"}
		var o livenessChecks
		o.record(h, liveness{asked: errors.New("it takes its time")})
		if o.absent(h) {
			t.Error("a holder that did not answer counts as absent")
		}
		o.record(h, liveness{asked: broker.ErrNoEdge})
		if !o.absent(h) {
			t.Error("a holder that nobody knows does not count as absent")
		}
		time.Sleep(absentFor + time.Millisecond)
		if o.absent(h) {
			t.Error("it counts as absent for ever")
		}
		o.record(presence.Holder{Edge: "b"}, liveness{})
		if len(o.gone) > 0 {
			t.Errorf("%d holders are kept in mind", len(o.gone))
		}
	})
}
