package trace

import (
	"log/slog"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const parent = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"

func TestATracerThatIsOffCostsNothing(t *testing.T) {
	var off *Tracer
	m := &agora.Message{Meta: agora.Meta{Trace: parent}}
	if n := testing.AllocsPerRun(100, func() {
		off.Send(m).End(nil)
		off.Deliver(m).End(nil)
	}); n != 0 || m.Meta.Trace != parent {
		t.Errorf("%v allocations, and the message names %q", n, m.Meta.Trace)
	}
	if err := off.Close(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestWhatIsNotSampledCostsNothing(t *testing.T) {
	on, err := Open(t.Context(), Config{Endpoint: "http://127.0.0.1:1", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	defer on.Close(t.Context())
	m, of := &agora.Message{}, &agora.Message{Meta: agora.Meta{Trace: strings.TrimSuffix(parent, "1") + "0"}}
	if n := testing.AllocsPerRun(100, func() {
		on.Send(m).End(nil)
		on.Deliver(m).End(nil)
	}); n != 0 {
		t.Errorf("%v allocations for a message of no trace", n)
	}
	if on.Send(of) != nil || on.Deliver(of) != nil {
		t.Error("a span was made of a trace that is not sampled")
	}
}
