// Package trace makes OpenTelemetry spans of messages on their way through an edge, and sends them to a collector.
//
// A message that is sent is a span under its sender's own, which ends when the log has stored it. Its delivery is a
// span of another trace that is linked to it: it may come hours later, in another session. What is sent on from an
// edge, to the log or to an agent, names the edge's span.
package trace

import (
	"context"
	"encoding/hex"
	"fmt"
	"log/slog"
	"net/url"
	"time"

	"github.com/go-logr/logr"
	"go.opentelemetry.io/otel"
	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdk "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"github.com/agora-relay/agora"
)

// LogLibrary makes the tracing library log to log, for the whole process: it knows no other way. For main.
func LogLibrary(log *slog.Logger) { otel.SetLogger(logr.FromSlogHandler(log.Handler())) }

// Config says where spans go and which are made.
type Config struct {
	Endpoint string  // of an OTLP/HTTP collector: http://HOST:4318; /v1/traces is added where it has no path
	Sample   float64 // of messages that belong to no trace, how many begin one: 0 to 1
	Edge     string  // id of the edge
	Version  string  // of the program
	Log      *slog.Logger
}

// Check returns what is wrong with an endpoint.
func Check(endpoint string) error {
	u, err := url.Parse(endpoint)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return fmt.Errorf("want http://HOST:4318 or https://…")
	}
	return nil
}

// Tracer makes spans. A nil one makes none, and costs a comparison. Its methods may be called at the same
// time and never block: what the collector does not take in time is dropped.
type Tracer struct {
	provider *sdk.TracerProvider
	tracer   trace.Tracer
	roots    bool // messages of no trace may begin one
}

// Open returns a Tracer. It connects to nothing yet; Close sends what is left.
func Open(ctx context.Context, cfg Config) (*Tracer, error) {
	opts := []otlptracehttp.Option{otlptracehttp.WithEndpointURL(cfg.Endpoint), otlptracehttp.WithTimeout(exportTime)}
	if u, err := url.Parse(cfg.Endpoint); err == nil && (u.Path == "" || u.Path == "/") {
		opts = append(opts, otlptracehttp.WithURLPath("/v1/traces"))
	}
	exporter, err := otlptracehttp.New(ctx, opts...)
	if err != nil {
		return nil, err
	}
	// The library knows no other way to say that spans were not taken.
	otel.SetErrorHandler(otel.ErrorHandlerFunc(func(err error) { cfg.Log.Warn("tracing", "err", err) }))
	p := sdk.NewTracerProvider(
		sdk.WithBatcher(exporter, sdk.WithBatchTimeout(batchTime)),
		sdk.WithSampler(sampler{sdk.TraceIDRatioBased(cfg.Sample)}),
		sdk.WithResource(resource.NewSchemaless(
			attribute.String("service.name", "agora"), attribute.String("service.version", cfg.Version),
			attribute.String("service.instance.id", cfg.Edge))),
	)
	return &Tracer{provider: p, tracer: p.Tracer("github.com/agora-relay/agora"), roots: cfg.Sample > 0}, nil
}

const (
	exportTime = 5 * time.Second // for one batch
	batchTime  = 2 * time.Second // that a span waits for others
)

// Close sends what is left, until ctx is over.
func (t *Tracer) Close(ctx context.Context) error {
	if t == nil {
		return nil
	}
	return t.provider.Shutdown(ctx)
}

// Send begins the span of a message that its sender's edge takes, and has the message name it. It is nil where none is made:
// then the message belongs to the trace that it named before, if any.
func (t *Tracer) Send(m *agora.Message) *Span {
	if t == nil || m.Meta.Trace == "" && !t.roots {
		return nil
	}
	parent := parse(m.Meta.Trace)
	if parent.IsValid() && !parent.IsSampled() {
		return nil
	}
	ctx := trace.ContextWithRemoteSpanContext(context.Background(), parent)
	_, s := t.tracer.Start(ctx, "agora send", trace.WithSpanKind(trace.SpanKindProducer), trace.WithAttributes(attrs(m, "send")...))
	return named(s, m)
}

// Deliver begins the span of a message that its receiver's edge hands to its agent, linked to the one that the message names, and
// has the message name it instead. It is nil where none is made.
func (t *Tracer) Deliver(m *agora.Message) *Span {
	if t == nil || m.Meta.Trace == "" || m.Part > agora.Start {
		return nil
	}
	sent := parse(m.Meta.Trace)
	if !sent.IsSampled() {
		return nil
	}
	_, s := t.tracer.Start(context.Background(), "agora deliver", trace.WithNewRoot(), trace.WithSpanKind(trace.SpanKindConsumer),
		trace.WithLinks(trace.Link{SpanContext: sent}), trace.WithAttributes(attrs(m, "deliver")...))
	return named(s, m)
}

// named has m name a span that is sampled; nil for any other.
func named(s trace.Span, m *agora.Message) *Span {
	c := s.SpanContext()
	if !c.IsSampled() {
		return nil
	}
	m.Meta.Trace = "00-" + c.TraceID().String() + "-" + c.SpanID().String() + "-01"
	return &Span{s}
}

func attrs(m *agora.Message, does string) []attribute.KeyValue {
	all := []attribute.KeyValue{
		attribute.String("messaging.system", "agora"), attribute.String("messaging.operation.name", does),
		attribute.String("messaging.destination.name", m.To.Name()), attribute.Bool("agora.space", m.To.IsSpace()),
		attribute.String("agora.from", string(m.From)), attribute.String("agora.tenant", m.To.Tenant),
		attribute.Int("messaging.message.body.size", len(m.Body)), attribute.Bool("agora.stream", m.Part == agora.Start),
	}
	if m.Seq > 0 {
		all = append(all, attribute.Int64("agora.seq", int64(m.Seq)))
	}
	return all
}

// Span is what happens to one message at one edge. A nil one is none.
type Span struct{ s trace.Span }

// End ends the span; with the code of err where that is not nil.
func (s *Span) End(err *agora.Error) {
	if s == nil {
		return
	}
	if err != nil {
		s.s.SetStatus(codes.Error, string(err.Code))
	}
	s.s.End()
}

// parse reads a traceparent; what can't be read is none.
func parse(s string) trace.SpanContext {
	if len(s) < 55 {
		return trace.SpanContext{}
	}
	id, err1 := trace.TraceIDFromHex(s[3:35])
	span, err2 := trace.SpanIDFromHex(s[36:52])
	flags, err3 := hex.DecodeString(s[53:55])
	if err1 != nil || err2 != nil || err3 != nil {
		return trace.SpanContext{}
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.TraceFlags(flags[0]), Remote: true})
}

// sampler does as whoever began a trace has decided; where nobody has, as root does.
type sampler struct{ root sdk.Sampler }

func (s sampler) ShouldSample(p sdk.SamplingParameters) sdk.SamplingResult {
	parent := trace.SpanContextFromContext(p.ParentContext)
	if parent.IsValid() || len(p.Links) > 0 { // neither is asked for one that was not sampled
		return sdk.SamplingResult{Decision: sdk.RecordAndSample, Tracestate: parent.TraceState()}
	}
	return s.root.ShouldSample(p)
}

func (s sampler) Description() string { return "as the trace, or " + s.root.Description() }
