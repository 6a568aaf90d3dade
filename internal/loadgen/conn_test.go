package loadgen

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/wire"
)

// served returns a frame as edges write it.
func served(op byte, payload []byte) []byte {
	masked := appendFrame(nil, op, payload)
	head := len(masked) - len(payload) - 4
	masked[1] &^= 0x80
	return append(masked[:head:head], payload...)
}

func TestFramesOfEverySizeAreReadAndPingsAnswered(t *testing.T) {
	near, far := net.Pipe()
	defer near.Close()
	defer far.Close()
	c := &Conn{nc: near, r: bufio.NewReaderSize(near, 512)}
	sizes := []int{0, 1, 125, 126, 511, 512, 513, 65535, 65536, 200_000, 3}
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for _, n := range sizes {
			_, _ = far.Write(served(opText, bytes.Repeat([]byte{'a'}, n))) // the reader misses what fails
		}
		_, _ = far.Write(served(opPing, []byte("ping")))
		pong := make([]byte, 10)
		if _, err := far.Read(pong); err != nil || !bytes.Equal(pong, appendFrame(nil, opPong, []byte("ping"))) {
			t.Errorf("the pong is %q, %v", pong, err)
		}
		_, _ = far.Write(served(opClose, []byte{4009 >> 8, 4009 & 0xff, 'x'}))
	})
	for _, n := range sizes {
		b, err := c.Next()
		if err != nil || len(b) != n || strings.Trim(string(b), "a") != "" || n > 0 && c.At() == 0 {
			t.Fatalf("a frame of %d bytes came as %d, %v", n, len(b), err)
		}
	}
	_, err := c.Next()
	if e, ok := errors.AsType[*ClosedError](err); !ok || e.Code != 4009 || e.Reason != "x" {
		t.Errorf("the end is %v", err)
	}
}

func TestWhatNoEdgeSendsIsAnError(t *testing.T) {
	for _, frame := range [][]byte{{0x01, 0}, {0xc1, 0}, {0x81, 0x80, 0, 0, 0, 0}, {0x83, 0}, {0x81, 127, 0xff, 0, 0, 0, 0, 0, 0, 0}} {
		c := &Conn{r: bufio.NewReader(bytes.NewReader(frame))}
		if b, err := c.Next(); err == nil {
			t.Errorf("%x is read as %q", frame, b)
		}
	}
}

func TestStampsComeBackFromTheFramesTheyWereWrittenInto(t *testing.T) {
	tmpl := newTemplate(&wire.Frame{Type: "send", To: "b", Payload: text(StampSize), ID: string(text(StampSize)[1 : 1+StampSize])})
	if len(tmpl.stamps) != 2 {
		t.Fatalf("%d stamps in %s", len(tmpl.stamps), tmpl.bytes)
	}
	for _, want := range []stamp{{}, {1, 2, 3}, {maxLines - 1, 1<<36 - 1, 1<<54 - 1}} {
		tmpl.fill(want)
		if got, ok := find(tmpl.bytes); !ok || got != want {
			t.Errorf("%+v came back as %+v, %v", want, got, ok)
		}
		var f wire.Frame
		if err := wire.DecodeRequest(tmpl.bytes[bytes.IndexByte(tmpl.bytes, '{'):], &f, wire.Limits{}); err != nil || len(f.ID) != StampSize {
			t.Errorf("the frame is %q, %v", tmpl.bytes, err)
		}
	}
	for _, frame := range []string{"", "no stamp", "@short", "@" + strings.Repeat("!", StampSize)} {
		if s, ok := find([]byte(frame)); ok {
			t.Errorf("%q has the stamp %+v", frame, s)
		}
	}
}

func TestArrivalsAreToComeOnceAndInOrder(t *testing.T) {
	r, _ := alone(t, Config{})
	a := r.agents[0]
	a.next, a.conn.at = map[int]uint64{}, 1
	for _, n := range []uint64{0, 1, 1, 4, 3} {
		a.arrived(stamp{line: 0, number: n}, nil)
	}
	a.arrived(stamp{line: 7}, nil)
	if r.notes.twice.Load() != 2 || r.notes.missed.Load() != 2 || r.notes.alien.Load() != 1 || r.meter.counts().total != 3 {
		t.Errorf("twice %d, missed %d, of others %d, in all %d", r.notes.twice.Load(), r.notes.missed.Load(), r.notes.alien.Load(), r.meter.counts().total)
	}
}

func TestWhatWasRefusedIsNotPassedOver(t *testing.T) {
	r, _ := alone(t, Config{})
	for n := range uint64(3) {
		r.lines[0].measure(n)
	}
	a := r.agents[0]
	id := make([]byte, StampSize)
	stamp{number: 1, at: 1}.put(id)
	a.arrived(stamp{number: 0, at: 1}, nil)
	a.take([]byte(`{"type":"error","code":"UNAVAILABLE","message":"later","request_id":"` + string(id) + `"}`))
	a.arrived(stamp{number: 2, at: 1}, nil)
	if out := r.result(1, nil, nil, 0); out.Missed != 0 || out.Refused != 1 || out.Received != 2 {
		t.Errorf("result is %+v", out)
	}
}

func TestWhatPrometheusReadsTellsWhatAProcessTakes(t *testing.T) {
	l, err := parseMetrics(strings.NewReader("# HELP x\ngo_memstats_heap_inuse_bytes 3e+06\ngo_memstats_stack_inuse_bytes 5\n" +
		"process_cpu_seconds_total 1.5\nprocess_resident_memory_bytes 7\nother 9\n"))
	if err != nil || l.CPU.Seconds() != 1.5 || l.RSS != 7 || l.Heap != 3_000_005 {
		t.Errorf("%+v, %v", l, err)
	}
}

func TestAJoinThatIsRefusedForNowIsTriedAgain(t *testing.T) {
	t.Parallel()
	r, far := alone(t, Config{})
	a := r.agents[0]
	r.name = "bench-room"
	var wg sync.WaitGroup
	defer wg.Wait()
	wg.Go(func() {
		for _, answer := range []string{`{"type":"error","code":"UNAVAILABLE","message":"later","request_id":"join"}`, `{"type":"space.joined","id":"join"}`} {
			if _, err := far.Read(make([]byte, 4096)); err != nil {
				t.Error(err)
			}
			a.take([]byte(answer))
		}
	})
	if err := r.join(t.Context()); err != nil || len(r.notes.errors) != 0 {
		t.Errorf("joining fails with %v, %v", err, r.notes.errors)
	}
}
