package loadgen

import (
	"net"
	"sync"
	"testing"
)

func TestArrivalsAreToComeOnceAndInOrder(t *testing.T) {
	r, _ := alone(t, Config{})
	a := r.agents[0]
	for _, n := range []uint64{hello, 0, 1, 1, hello, 4, 3} {
		a.Arrived(Stamp{Number: n}, 1)
	}
	if n := &r.notes; n.twice.Load() != 2 || n.missed.Load() != 2 || r.heard() != 1 {
		t.Errorf("%d came twice, %d were missed, %d lines heard; want 2, 2 and 1", n.twice.Load(), n.missed.Load(), r.heard())
	}
	a.Arrived(Stamp{Line: 1}, 1)
	if r.notes.errors["foreign"] != 1 {
		t.Errorf("a message of a line that there is not is noted as %v", r.notes.errors)
	}
}

func TestWhatWasRefusedIsNotPassedOver(t *testing.T) {
	r, _ := alone(t, Config{})
	for n := range uint64(3) {
		r.lines[0].measure(n)
	}
	a := r.agents[0]
	a.Arrived(Stamp{Number: 0, At: 1}, 1)
	piped(nil).take([]byte(`{"type":"error","code":"UNAVAILABLE","message":"later","request_id":"`+stamped(Stamp{Number: 1, At: 1})+`"}`), a)
	a.Arrived(Stamp{Number: 2, At: 1}, 1)
	if out := r.result(1, nil, nil, 0); out.Missed != 0 || out.Refused != 1 || out.Received != 2 {
		t.Errorf("result is %+v", out)
	}
}

func TestAStreamThatFailsEndsItsLine(t *testing.T) {
	r, _ := alone(t, Config{})
	piped(nil).take([]byte(`{"type":"error","code":"STREAM_ABORTED","message":"gone","stream_id":"s0"}`), r.agents[0])
	if !r.lines[0].dead.Load() {
		t.Error("its line sends on")
	}
}

func TestAJoinThatIsRefusedForNowIsTriedAgain(t *testing.T) {
	t.Parallel()
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for _, answers := range []string{"\x81\x36" + `{"type":"error","code":"UNAVAILABLE","message":"soon"}`, "\x81\x10" + `{"type":"other"}` + "\x81\x17" + `{"type":"space.joined"}`} {
			if _, err := far.Read(make([]byte, 4096)); err != nil { // what asks to join
				t.Error(err)
			}
			_, _ = far.Write([]byte(answers)) // the agent misses what fails
		}
	})
	if _, err := piped(near).Open(t.Context(), Way{Kind: FanOut, To: "room", Text: Text(StampSize)}); err != nil {
		t.Errorf("joining fails with %v", err)
	}
}
