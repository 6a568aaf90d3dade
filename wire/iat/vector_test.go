package iat

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire"
)

// vector is one file of testdata/iat. It has an envelope from a client, in one of three spellings, and what is decoded, stored
// and delivered of it, or why it is refused; or a message of the core, and the envelope that says it, null for none.
type vector struct {
	About  string          `json:"about"`
	Frame  json.RawMessage `json:"frame"`  // valid JSON, byte for byte
	Text   *string         `json:"text"`   // what may be none
	Base64 *string         `json:"base64"` // what may not be text

	Bound   string          `json:"bound"` // the id that the sender is bound to
	Root    string          `json:"root"`
	Decoded *vectorEnvelope `json:"decoded"`
	Head    *struct {
		Header   json.RawMessage `json:"header"`
		Metadata json.RawMessage `json:"metadata"`
	} `json:"head"`

	Message  *vectorMessage  `json:"message"`
	Delivery vectorDelivery  `json:"delivery"`
	Envelope json.RawMessage `json:"envelope"`

	Error *vectorError `json:"error"`
}

type vectorEnvelope struct {
	ID         string   `json:"id"`
	Parent     string   `json:"parent,omitempty"`
	Type       string   `json:"type"`
	From       string   `json:"from,omitempty"`
	To         string   `json:"to,omitempty"`
	Trace      string   `json:"trace,omitempty"`
	TTL        uint64   `json:"ttl,omitempty"`
	Token      string   `json:"token,omitempty"`
	DeadlineMS int64    `json:"deadline_ms,omitempty"`
	Receipts   []string `json:"receipts,omitempty"`
	Action     string   `json:"action,omitempty"`
}

type vectorDelivery struct {
	ID          string `json:"id"`
	Parent      string `json:"parent"`
	Redelivered bool   `json:"redelivered"`
	DeadlineMS  int64  `json:"deadline_ms"`
	Time        int64  `json:"time"`
	Trace       string `json:"trace"`
}

func (v vectorDelivery) delivery() Delivery {
	d := Delivery{ID: v.ID, Parent: v.Parent, Redelivered: v.Redelivered, DeadlineMS: v.DeadlineMS, Trace: v.Trace}
	if v.Time > 0 {
		d.Time = time.Unix(v.Time, 0)
	}
	return d
}

type vectorMessage struct {
	Kind    agora.Kind `json:"kind"`
	Part    agora.Part `json:"part"`
	Stream  string     `json:"stream"`
	N       uint64     `json:"n"`
	Seq     uint64     `json:"seq"`
	From    string     `json:"from"`
	To      string     `json:"to"`
	Body    *string    `json:"body"`
	Media   string     `json:"media"`
	Trace   string     `json:"trace"`
	Parent  string     `json:"parent"`
	Call    string     `json:"call"`
	Receipt *struct {
		Tier, ID, Session, Stream string
		N                         uint64
		Index                     uint32
	} `json:"receipt"`
}

type vectorError struct {
	Code agora.Code `json:"code"`
	Path string     `json:"path"`
	ID   string     `json:"id"`
	From string     `json:"from"`
}

func (v *vectorMessage) message(t testing.TB) agora.Message {
	m := agora.Message{
		Kind: v.Kind, Part: v.Part, Stream: v.Stream, N: v.N, Seq: v.Seq, From: agora.AgentID(v.From), To: agora.ToAgent("", agora.AgentID(v.To)),
		Media: v.Media, Meta: agora.Meta{Trace: v.Trace, Parent: v.Parent, Call: v.Call},
	}
	if v.Body != nil {
		m.Body = []byte(*v.Body)
	}
	if r := v.Receipt; r != nil {
		tier := agora.Undelivered
		if r.Tier != "undelivered" {
			var err error
			tier, err = wire.ParseReceipts(r.Tier)
			must(t, err)
		}
		own := agora.ReceiptBody{Tier: tier, ID: r.ID, Session: r.Session, N: r.N, Stream: r.Stream, Index: r.Index}.Message()
		m.Body, m.Media = own.Body, own.Media
	}
	return m
}

func (v *vector) bytes(t testing.TB) []byte {
	switch {
	case v.Text != nil:
		return []byte(*v.Text)
	case v.Base64 != nil:
		b, err := base64.StdEncoding.DecodeString(*v.Base64)
		must(t, err)
		return b
	}
	return v.Frame
}

// load reads all vectors, each strictly.
func load(t testing.TB) map[string]*vector {
	t.Helper()
	all := map[string]*vector{}
	paths, err := filepath.Glob("../testdata/iat/*.json")
	must(t, err)
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		v := new(vector)
		if err := d.Decode(v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[strings.TrimSuffix(filepath.Base(path), ".json")] = v
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func asJSON(t testing.TB, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func TestVectors(t *testing.T) {
	bad := 0
	for name, v := range load(t) {
		if v.Error != nil {
			bad++
		}
		t.Run(name, func(t *testing.T) {
			switch {
			case v.About == "":
				t.Fatal("it says nothing of what it is about")
			case v.Error != nil:
				v.testRefused(t)
			case v.Message != nil:
				v.testDelivered(t)
			default:
				v.testDecoded(t)
			}
		})
	}
	if bad < 60 {
		t.Errorf("there are %d bad ones, want 60 or more", bad)
	}
}

func (v *vector) testRefused(t *testing.T) {
	var e Envelope
	err := Decode(v.bytes(t), &e, Limits{})
	if err == nil {
		err = CheckAction(&e)
	}
	f, ok := errors.AsType[*Fault](err)
	if !ok {
		t.Fatalf("got %v, want a fault", err)
	}
	got := vectorError{Code: agora.AsError(err).Code, Path: f.Path, ID: f.ID, From: f.From}
	if got != *v.Error {
		t.Errorf("got %+v, want %+v", got, *v.Error)
	}
	if f.Path != "" && !strings.HasPrefix(f.Err.Message, f.Path+" ") {
		t.Errorf("the message does not name the place: %s", f.Err.Message)
	}
}

// testDecoded takes an envelope from its sender to its receiver.
func (v *vector) testDecoded(t *testing.T) {
	var e Envelope
	must(t, Decode(v.bytes(t), &e, Limits{}))
	must(t, CheckAction(&e))
	got := vectorEnvelope{
		ID: e.ID, Parent: e.Parent, Type: e.Type.String(), From: e.From, To: e.To, Trace: e.Trace, TTL: e.TTL, Token: e.Token,
		DeadlineMS: e.Deadline.Milliseconds(), Action: e.Action,
	}
	for _, tier := range []agora.Receipts{agora.Stored, agora.Delivered, agora.Acked} {
		if e.Receipts&tier != 0 {
			got.Receipts = append(got.Receipts, wire.TierName(tier))
		}
	}
	if got, want := asJSON(t, got), asJSON(t, v.Decoded); got != want {
		t.Errorf("decoded\n %s, want\n %s", got, want)
	}
	head := e.AppendHead(nil, agora.AgentID(v.Bound), v.Root)
	header, metadata, ok := readHead(head)
	if !ok || string(header) != string(v.Head.Header) || string(metadata) != string(v.Head.Metadata) {
		t.Errorf("head is\n %s\n %s, %v, want\n %s\n %s", header, metadata, ok, v.Head.Header, v.Head.Metadata)
	}
	m := agora.Message{Body: e.Payload, Meta: agora.Meta{Dialect: Dialect, Head: head}}
	if e.Type == Chunk {
		m.Kind, m.Part = agora.Reply, agora.Chunk
		if text, ok := TextBody(e.Payload); ok {
			m.Body, m.Media = text, agora.MediaText
		}
	}
	if got := AppendEnvelope(nil, &m, v.Delivery.delivery()); string(got) != string(v.Envelope) {
		t.Errorf("delivered as\n %s, want\n %s", got, v.Envelope)
	}
}

func (v *vector) testDelivered(t *testing.T) {
	m := v.Message.message(t)
	shows := string(v.Envelope) != "null"
	if got := Shows(&m); got != shows {
		t.Fatalf("Shows = %v, want %v", got, shows)
	}
	if !shows {
		return
	}
	got := AppendEnvelope(nil, &m, v.Delivery.delivery())
	if string(got) != string(v.Envelope) {
		t.Errorf("envelope is\n %s, want\n %s", got, v.Envelope)
	}
	var e Envelope
	if err := Decode(got, &e, Limits{}); err != nil && !strings.Contains(err.Error(), "/header/parent_id") {
		t.Errorf("the envelope is none: %v", err)
	}
}
