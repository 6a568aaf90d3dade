package wire

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// vector is one file of testdata/relay or testdata/spaces: a frame in one of
// three spellings, and what is to become of it.
type vector struct {
	About string          `json:"about"`
	From  string          `json:"from"`  // client or server
	Frame json.RawMessage `json:"frame"` // a well-formed frame
	Text  *string         `json:"text"`  // a frame that may not be JSON
	Hex   string          `json:"hex"`   // a frame that may not be text

	Written  json.RawMessage `json:"written"`  // what it is written as again, if not the same
	Message  *vectorMessage  `json:"message"`  // what a client's frame asks for, or what a server's frame was made of
	Delivery vectorDelivery  `json:"delivery"` // what the edge added to that
	Error    *vectorError    `json:"error"`
}

type vectorDelivery struct {
	Redelivered bool  `json:"redelivered"`
	DeadlineMS  int64 `json:"deadline_ms"`
}

// vectorError is what refusing a frame looks like: part of the message, and what could be read of the frame.
type vectorError struct {
	Code    agora.Code `json:"code"`
	Message string     `json:"message"`
	Type    string     `json:"type"`
	ID      string     `json:"id"`
}

type vectorMessage struct {
	ID      string     `json:"id"`
	N       uint64     `json:"n"`
	Kind    agora.Kind `json:"kind"`
	Part    agora.Part `json:"part"`
	Stream  string     `json:"stream"`
	Index   *uint32    `json:"index"`
	From    string     `json:"from"`
	Session string     `json:"session"`
	To      struct {
		Agent string `json:"agent"`
		Space string `json:"space"`
	} `json:"to"`
	Receipts json.RawMessage `json:"receipts"`
	Body     json.RawMessage `json:"body"`
	Text     string          `json:"text"` // a body that is not JSON by itself
	Media    string          `json:"media"`
	Receipt  *vectorReceipt  `json:"receipt"` // in place of a body
	Roster   *struct {
		Members      []agora.AgentID
		Joined, Left agora.AgentID
	} `json:"roster"`
	Again   bool   `json:"again"`
	Trace   string `json:"trace"`
	Parent  string `json:"parent"`
	Request string `json:"request"`
	Call    string `json:"call"`
	Dialect string `json:"dialect"`
	Seq     uint64 `json:"seq"`
}

type vectorReceipt struct {
	Tier    string `json:"tier"`
	ID      string `json:"id"`
	Session string `json:"session"`
	N       uint64 `json:"n"`
	Stream  string `json:"stream"`
	Index   uint32 `json:"index"`
}

func (v *vectorMessage) message(t *testing.T) agora.Message {
	m := agora.Message{
		ID: v.ID, N: v.N, Kind: v.Kind, Part: v.Part, Stream: v.Stream, From: agora.AgentID(v.From), Session: v.Session,
		To: agora.Address{Agent: agora.AgentID(v.To.Agent), Space: v.To.Space}, Body: v.Body, Media: v.Media, Again: v.Again, Seq: v.Seq,
		Meta: agora.Meta{Trace: v.Trace, Parent: v.Parent, Request: v.Request, Call: v.Call, Dialect: v.Dialect},
	}
	if v.Index != nil {
		m.Index, m.Indexed = *v.Index, true
	}
	if v.Text != "" {
		m.Body = []byte(v.Text)
	}
	if r := v.Receipt; r != nil {
		tier := agora.Undelivered
		if r.Tier != "undelivered" {
			var err error
			tier, err = ParseReceipts(r.Tier)
			must(t, err)
		}
		own := agora.ReceiptBody{Tier: tier, ID: r.ID, Session: r.Session, N: r.N, Stream: r.Stream, Index: r.Index}.Message()
		m.Body, m.Media = own.Body, own.Media
	}
	if r := v.Roster; r != nil {
		own := agora.RosterBody{Members: r.Members, Joined: r.Joined, Left: r.Left}.Message()
		m.Body, m.Media = own.Body, own.Media
	}
	if v.Receipts != nil {
		var names []string
		must(t, json.Unmarshal(v.Receipts, &names))
		r, err := ParseReceipts(strings.Join(names, ","))
		must(t, err)
		m.Meta.Receipts = r
	}
	return m
}

func (v *vector) bytes(t testing.TB) []byte {
	switch {
	case v.Text != nil:
		return []byte(*v.Text)
	case v.Hex != "":
		b, err := hex.DecodeString(v.Hex)
		must(t, err)
		return b
	}
	return v.Frame
}

func (v *vector) decode(b []byte, f *Frame) error {
	if v.From == "server" {
		return DecodeAnswer(b, f)
	}
	return DecodeRequest(b, f, Limits{})
}

// load reads the vectors of a folder, whose files are each decoded strictly into a T.
func load[T any](t testing.TB, folders ...string) map[string]*T {
	t.Helper()
	all := map[string]*T{}
	for _, folder := range folders {
		paths, err := filepath.Glob(filepath.Join("testdata", folder, "*.json"))
		must(t, err)
		if len(paths) == 0 {
			t.Fatalf("no vectors in testdata/%s", folder)
		}
		for _, path := range paths {
			b, err := os.ReadFile(path)
			must(t, err)
			d := json.NewDecoder(bytes.NewReader(b))
			d.DisallowUnknownFields()
			v := new(T)
			if err := d.Decode(v); err != nil {
				t.Fatalf("%s: %v", path, err)
			}
			all[folder+"/"+strings.TrimSuffix(filepath.Base(path), ".json")] = v
		}
	}
	return all
}

func compact(t testing.TB, b []byte) string {
	t.Helper()
	var c bytes.Buffer
	must(t, json.Compact(&c, b))
	return c.String()
}

func TestVectors(t *testing.T) {
	for name, v := range load[vector](t, "relay", "spaces") {
		t.Run(name, func(t *testing.T) {
			if v.About == "" || v.From != "client" && v.From != "server" {
				t.Fatalf("about = %q, from = %q: want a sentence, and client or server", v.About, v.From)
			}
			if v.Error != nil {
				v.testRefused(t)
				return
			}
			v.testWritten(t)
			if v.Message != nil && v.From == "client" {
				v.testRelay(t)
			}
			if v.Message != nil && v.From == "server" {
				v.testDelivered(t)
			}
		})
	}
}

func (v *vector) testRefused(t *testing.T) {
	var f Frame
	err := v.decode(v.bytes(t), &f)
	if err == nil {
		t.Fatalf("decoded %+v, want an error", f)
	}
	e := agora.AsError(err)
	if e.Code != v.Error.Code || !strings.Contains(e.Message, v.Error.Message) {
		t.Errorf("got %v, want %s: …%s…", e, v.Error.Code, v.Error.Message)
	}
	if f.Type != v.Error.Type || f.ID != v.Error.ID {
		t.Errorf("read type %q and id %q, want %q and %q", f.Type, f.ID, v.Error.Type, v.Error.ID)
	}
}

// testWritten decodes the frame and writes it again.
func (v *vector) testWritten(t *testing.T) {
	var f Frame
	if err := v.decode(v.bytes(t), &f); err != nil {
		t.Fatal(err)
	}
	want := v.bytes(t)
	if v.Written != nil {
		want = v.Written
	}
	if got := f.Append(nil); compact(t, got) != compact(t, want) {
		t.Errorf("written again as\n %s, want\n %s", got, compact(t, want))
	}
}

// testRelay checks the message that a client's frame asks for; its body byte for byte.
func (v *vector) testRelay(t *testing.T) {
	var f Frame
	must(t, v.decode(v.bytes(t), &f))
	got, want := f.Relay(), v.Message.message(t)
	got.From = want.From
	if !bytes.Equal(got.Body, want.Body) || (got.Body == nil) != (want.Body == nil) {
		t.Errorf("body is %q, want %q", got.Body, want.Body)
	}
	got.Body, want.Body = nil, nil
	if g, w := asJSON(t, got), asJSON(t, want); g != w {
		t.Errorf("message is\n %s, want\n %s", g, w)
	}
}

// testDelivered checks the frame that a message becomes; byte for byte if the frame stands in one line.
func (v *vector) testDelivered(t *testing.T) {
	m := v.Message.message(t)
	got, want := string(AppendMessage(nil, &m, Delivery(v.Delivery))), string(v.Frame)
	if strings.Contains(want, "\n") {
		got, want = compact(t, []byte(got)), compact(t, v.Frame)
	}
	if got != want {
		t.Errorf("delivered as\n %s, want\n %s", got, want)
	}
}

func asJSON(t *testing.T, v any) string {
	t.Helper()
	b, err := json.Marshal(v)
	must(t, err)
	return string(b)
}

func TestEveryFrameHasAVector(t *testing.T) {
	seen := map[string]bool{}
	for _, v := range load[vector](t, "relay", "spaces") {
		var f Frame
		if v.Error == nil && v.decode(v.bytes(t), &f) == nil {
			seen[v.From+" "+f.Type] = true
		}
	}
	for _, r := range rows {
		if r.from&fromClient != 0 && !seen["client "+r.name] {
			t.Errorf("no vector has a %s from a client", r.name)
		}
		if r.from&fromServer != 0 && !seen["server "+r.name] {
			t.Errorf("no vector has a %s from a server", r.name)
		}
	}
}
