package loadgen

import (
	"bytes"
	"strings"
	"testing"

	"github.com/agora-relay/agora/wire"
)

// stamped returns a stamp as it is written.
func stamped(s Stamp) string {
	b := make([]byte, StampSize)
	s.put(b)
	return string(b)
}

func TestStampsComeBackFromTheFramesTheyWereWrittenInto(t *testing.T) {
	frames := framed(&wire.Frame{Type: "send", To: "b", Payload: quoted(Text(StampSize)), ID: Blank})
	if n := len(frames.(*Template).stamps); n != 2 {
		t.Fatalf("%d stamps in %s", n, frames.Frame(Stamp{}))
	}
	for _, want := range []Stamp{{}, {1, 2, 3}, {maxLines - 1, hello, 1<<54 - 1}} {
		frame := frames.Frame(want)
		if got, ok := Find(frame); !ok || got != want {
			t.Errorf("%+v came back as %+v, %v", want, got, ok)
		}
		var f wire.Frame
		if err := wire.DecodeRequest(frame[bytes.IndexByte(frame, '{'):], &f, wire.Limits{}); err != nil || f.ID != stamped(want) {
			t.Errorf("the frame is %q, %v", frame, err)
		}
	}
	for _, frame := range []string{"", "no stamp", "@short", "@" + strings.Repeat("!", StampSize)} {
		if s, ok := Find([]byte(frame)); ok {
			t.Errorf("%q has the stamp %+v", frame, s)
		}
	}
}

func TestWhatPrometheusReadsTellsWhatAProcessTakes(t *testing.T) {
	l, err := parseMetrics(strings.NewReader("# HELP x\ngo_memstats_heap_inuse_bytes 3e+06\ngo_memstats_stack_inuse_bytes 5\n" +
		"process_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 7\nother 9\n"))
	if err != nil || l.CPU.Seconds() != 1.5 || l.RSS != 7 || l.Heap != 3_000_005 {
		t.Errorf("%+v, %v", l, err)
	}
}
