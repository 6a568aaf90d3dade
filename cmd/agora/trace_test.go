package main

import (
	"bytes"
	"compress/gzip"
	"encoding/hex"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	otlp "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	tracepb "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora/internal/await"
)

// spans is an OpenTelemetry collector that keeps what it is told.
type spans struct {
	*httptest.Server

	mu  sync.Mutex // guards the field below
	all map[string]*tracepb.Span
}

func collect(t *testing.T) *spans {
	t.Helper()
	s := &spans{all: map[string]*tracepb.Span{}}
	s.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body io.Reader = r.Body
		if r.Header.Get("Content-Encoding") == "gzip" {
			body, _ = gzip.NewReader(r.Body)
		}
		b, err := io.ReadAll(body)
		var req otlp.ExportTraceServiceRequest
		if err != nil || r.URL.Path != "/v1/traces" || proto.Unmarshal(b, &req) != nil {
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.mu.Lock()
		defer s.mu.Unlock()
		for _, resource := range req.ResourceSpans {
			edge := ""
			for _, a := range resource.Resource.Attributes {
				if a.Key == "service.instance.id" {
					edge = a.Value.GetStringValue()
				}
			}
			for _, scope := range resource.ScopeSpans {
				for _, span := range scope.Spans {
					s.all[edge+": "+span.Name+" "+hex.EncodeToString(span.SpanId)] = span
				}
			}
		}
		w.Header().Set("Content-Type", "application/x-protobuf")
	}))
	t.Cleanup(s.Close)
	return s
}

// of waits for the one span of a name at an edge.
func (s *spans) of(t *testing.T, name string) (span *tracepb.Span) {
	t.Helper()
	await.True(t, "the collector has "+name, func() bool {
		s.mu.Lock()
		defer s.mu.Unlock()
		for key, candidate := range s.all {
			if strings.HasPrefix(key, name+" ") {
				span = candidate
			}
		}
		return span != nil
	})
	return span
}

func (s *spans) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.all)
}

const (
	callersTrace = "4bf92f3577b34da6a3ce929d0e0e4736"
	callersSpan  = "00f067aa0ba902b7"
)

func TestATraceGoesFromItsCallerOverTwoEdgesToTheReceiver(t *testing.T) {
	t.Parallel()
	c := collect(t)
	args := append(backends(t), "--trace.endpoint", c.URL, "--trace.sample", "0")
	one, two := launch(t, append(args, "--id", "one")...).ready(), launch(t, append(args, "--id", "two")...).ready()
	alice, bob := connect(t, one.public+"?agent_id=alice"), connect(t, two.public+"?agent_id=bob")
	alice.hear("agent.registered")
	bob.hear("agent.registered")
	alice.say(`{"type":"send","to":"bob","payload":{"a":1},"traceparent":"00-` + callersTrace + `-` + callersSpan + `-01"}`)
	m := bob.hear("message")
	sent, given := c.of(t, "one: agora send"), c.of(t, "two: agora deliver")
	if hex.EncodeToString(sent.TraceId) != callersTrace || hex.EncodeToString(sent.ParentSpanId) != callersSpan {
		t.Errorf("the sender's edge made %x under %x, want it under its caller's span", sent.TraceId, sent.ParentSpanId)
	}
	if bytes.Equal(given.TraceId, sent.TraceId) || len(given.ParentSpanId) != 0 {
		t.Errorf("the delivery is nested in trace %x", given.TraceId)
	}
	if len(given.Links) != 1 || !bytes.Equal(given.Links[0].TraceId, sent.TraceId) || !bytes.Equal(given.Links[0].SpanId, sent.SpanId) {
		t.Errorf("the delivery is linked to %v, want the span of the sender's edge", given.Links)
	}
	if want := "00-" + hex.EncodeToString(given.TraceId) + "-" + hex.EncodeToString(given.SpanId) + "-01"; m.Traceparent != want {
		t.Errorf("the receiver got %q, want %q", m.Traceparent, want)
	}
	if sent.EndTimeUnixNano < sent.StartTimeUnixNano || sent.Kind != tracepb.Span_SPAN_KIND_PRODUCER || given.Kind != tracepb.Span_SPAN_KIND_CONSUMER {
		t.Errorf("spans %v and %v", sent, given)
	}
}

func TestWhatIsNotSampledIsPassedOnAndMakesNoSpan(t *testing.T) {
	t.Parallel()
	c := collect(t)
	e := launch(t, append(backends(t), "--trace.endpoint", c.URL, "--trace.sample", "0")...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	a.say(`{"type":"send","to":"alice","payload":1}`)
	if m := a.hear("message"); m.Traceparent != "" {
		t.Errorf("a message of no trace came with %q", m.Traceparent)
	}
	parent := "00-" + callersTrace + "-" + callersSpan + "-00"
	a.say(`{"type":"send","to":"alice","payload":1,"traceparent":"` + parent + `"}`)
	if m := a.hear("message"); m.Traceparent != parent {
		t.Errorf("traceparent %q, want it as it was sent", m.Traceparent)
	}
	if status := e.ended(a); status != 0 || c.count() != 0 {
		t.Errorf("ended with %d, having sent %d spans, want none", status, c.count())
	}
}

func TestAShareOfWhatBelongsToNoTraceBeginsOne(t *testing.T) {
	t.Parallel()
	c := collect(t)
	e := launch(t, append(backends(t), "--id", "e", "--trace.endpoint", c.URL, "--trace.sample", "1")...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	a.say(`{"type":"send","to":"alice","payload":1}`)
	a.hear("message")
	e.ended(a) // which sends what is left
	if sent, given := c.of(t, "e: agora send"), c.of(t, "e: agora deliver"); len(sent.ParentSpanId) != 0 || len(given.Links) != 1 {
		t.Errorf("spans %v and %v", sent, given)
	}
}

func TestWithoutACollectorTracesArePassedOn(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	parent := "00-" + callersTrace + "-" + callersSpan + "-01"
	a.say(`{"type":"send","to":"alice","stream_id":"s","stream":true,"payload":1,"traceparent":"` + parent + `"}`)
	a.say(`{"type":"send_chunk","to":"alice","stream_id":"s","chunk":"x"}`)
	if m := a.hear("message"); m.Traceparent != parent {
		t.Errorf("traceparent %q, want it as it was sent", m.Traceparent)
	}
	if m := a.hear("message_chunk"); m.Traceparent != "" {
		t.Errorf("a chunk came with %q", m.Traceparent)
	}
	a.say(`{"type":"space.join","id":"1","space":"lab"}`)
	a.hear("space.joined")
	a.say(`{"type":"space.publish","space":"lab","data":{"text":"x"},"traceparent":"` + parent + `"}`)
	if m := a.hear("space.event"); m.Traceparent != parent {
		t.Errorf("an event came with %q", m.Traceparent)
	}
}

func TestAnEdgeServesAndEndsThoughItsCollectorIsAway(t *testing.T) {
	t.Parallel()
	e := launch(t, append(backends(t), "--trace.endpoint", "http://127.0.0.1:1", "--trace.sample", "1")...).ready()
	a := connect(t, e.public+"?agent_id=alice")
	a.hear("agent.registered")
	a.say(`{"type":"send","to":"alice","payload":1}`)
	a.hear("message")
	if status := e.ended(a); status != 0 {
		t.Errorf("ended with %d: %s", status, e.stderr)
	}
}
