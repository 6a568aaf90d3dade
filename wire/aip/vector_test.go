package aip

import (
	"bytes"
	"encoding/base64"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protojson"
	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
)

// vector is one file of testdata/aip. Of the members beside about it has those of one of the tests below. Messages of AIP stand as protobuf's JSON, with the names of the
// proto.
type vector struct {
	About string `json:"about"`
	// Error is why what stands beside it is refused, the last of it where that is a list.
	Error *vectorError `json:"error"`

	// testEnvelope: encoded bytes, and what is read of them.
	Base64       *string         `json:"base64"`
	Envelope     json.RawMessage `json:"envelope"`
	ToolEnvelope json.RawMessage `json:"tool_envelope"`
	Readdressed  *struct {
		Sender   string `json:"sender"`
		Receiver string `json:"receiver"`
		Base64   string `json:"base64"`
	} `json:"readdressed"`

	// testPayload: content, and the payload that it is elsewhere, null for none. Way is "to" or "from" the payload where it is not both.
	Content []json.RawMessage `json:"content"`
	Payload *string           `json:"payload"`
	Way     string            `json:"way"`

	// testQuests: what a caller says, and the parts that it is in a mailbox. testPut: parts out of a mailbox, and what their node is told.
	Quests []json.RawMessage `json:"quests"`
	Parts  []vectorPart      `json:"parts"`
	Put    []vectorPart      `json:"put"`
	Node   string            `json:"node"`
	Name   string            `json:"name"`

	// testResponses: what a node responds, and the reply that it is. testReplies: parts of replies, or "stop" for the caller's STOP_QUEST, and what the caller is told.
	Responses []json.RawMessage `json:"responses"`
	Reply     []vectorPart      `json:"reply"`
	Replies   []vectorPart      `json:"replies"`

	// testRegistered: what a node registers with, and its card. testListed: a card, and what is listed of it.
	Agent   json.RawMessage `json:"agent_info"`
	Toolbox json.RawMessage `json:"toolbox_info"`
	Card    *vectorCard     `json:"card"`
	Listed  *vectorCard     `json:"listed"`
	Address string          `json:"address"`
	Peer    json.RawMessage `json:"peer"`

	// testCall: a call, and the ToolRequest that it is. testCalled: a ToolRequest, and the call that it is. testResult: a ToolResponse, and what it says. testAnswer: the parts of an
	// answer, or an error of who has the tool, and the ToolResponse that it is.
	Call    *vectorCall     `json:"call"`
	Request json.RawMessage `json:"request"`
	Called  json.RawMessage `json:"called"`
	Result  *vectorResult   `json:"result"`
	Said    json.RawMessage `json:"said"`
	Answer  []vectorPart    `json:"answer"`
	Failed  *vectorError    `json:"failed"`
	Told    json.RawMessage `json:"told"`

	// testStatus: an error, and its status. testCode: a code of gRPC.
	Fault  *vectorError  `json:"fault"`
	Status *vectorStatus `json:"status"`
	GRPC   *vectorCode   `json:"grpc"`
}

type vectorError struct {
	Code    agora.Code `json:"code"`
	Message string     `json:"message"`
}

type vectorPart struct {
	Kind    agora.Kind    `json:"kind"`
	Part    agora.Part    `json:"part"`
	Stream  string        `json:"stream,omitempty"`
	From    agora.AgentID `json:"from,omitempty"`
	To      agora.AgentID `json:"to,omitempty"`
	ID      string        `json:"id,omitempty"`
	Seq     uint64        `json:"seq,omitempty"`
	Request string        `json:"request,omitempty"`
	Parent  string        `json:"parent,omitempty"`
	Body    *string       `json:"body,omitempty"`
	Base64  *string       `json:"base64,omitempty"` // of a body that is no text
	Media   string        `json:"media,omitempty"`
	Stop    bool          `json:"stop,omitempty"` // no part: the caller ends
}

func (p *vectorPart) message(t testing.TB) agora.Message {
	m := agora.Message{
		Kind: p.Kind, Part: p.Part, Stream: p.Stream, From: p.From, To: agora.Address{Agent: p.To}, ID: p.ID, Seq: p.Seq, Media: p.Media,
		Meta: agora.Meta{Request: p.Request, Parent: p.Parent},
	}
	switch {
	case p.Body != nil:
		m.Body = []byte(*p.Body)
	case p.Base64 != nil:
		m.Body = unbase(t, *p.Base64)
	}
	return m
}

// partOf returns a message as a vector has it.
func partOf(m *agora.Message) vectorPart {
	p := vectorPart{
		Kind: m.Kind, Part: m.Part, Stream: m.Stream, From: m.From, To: m.To.Agent, ID: m.ID, Seq: m.Seq, Request: m.Meta.Request, Parent: m.Meta.Parent, Media: m.Media,
	}
	switch s := string(m.Body); {
	case m.Body == nil:
	case m.Media == "" || m.Media == agora.MediaText:
		p.Body = &s
	default:
		s = base64.StdEncoding.EncodeToString(m.Body)
		p.Base64 = &s
	}
	return p
}

type vectorSkill struct {
	Name        string  `json:"name"`
	Description string  `json:"description,omitempty"`
	Schema      *string `json:"schema,omitempty"`
}

type vectorCard struct {
	ID           agora.AgentID `json:"id"`
	Type         string        `json:"type,omitempty"`
	Dialect      string        `json:"dialect,omitempty"`
	Name         string        `json:"name,omitempty"`
	Domain       string        `json:"domain,omitempty"`
	Description  string        `json:"description,omitempty"`
	Version      string        `json:"version,omitempty"`
	Skills       []vectorSkill `json:"skills,omitempty"`
	Tools        []vectorSkill `json:"tools,omitempty"`
	Media        string        `json:"media,omitempty"`
	MetadataText string        `json:"metadata,omitempty"` // but for what identifies the registration
}

type vectorCall struct {
	Sender    string  `json:"sender"`
	Toolbox   string  `json:"toolbox"`
	Session   string  `json:"session"`
	Tool      string  `json:"tool"`
	Arguments *string `json:"arguments"`
}

type vectorResult struct {
	Body   *string `json:"body,omitempty"`
	Failed string  `json:"failed,omitempty"`
}

type vectorStatus struct {
	Code    string `json:"code"`
	Message string `json:"message"`
}

type vectorCode struct {
	Code        string     `json:"code"`
	Is          agora.Code `json:"is"`
	Deregisters bool       `json:"deregisters"`
}

// load reads all vectors, each strictly.
func load(t testing.TB) map[string]*vector {
	t.Helper()
	all := map[string]*vector{}
	paths, err := filepath.Glob("../testdata/aip/*.json")
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

func unbase(t testing.TB, s string) []byte {
	t.Helper()
	b, err := base64.StdEncoding.DecodeString(s)
	must(t, err)
	return b
}

// message reads a message of AIP.
func message[M proto.Message](t testing.TB, raw json.RawMessage, m M) M {
	t.Helper()
	if err := protojson.Unmarshal(raw, m); err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	return m
}

// is checks that encoded bytes are a message of AIP.
func is[M proto.Message](t testing.TB, encoded []byte, want json.RawMessage, got, wanted M) {
	t.Helper()
	must(t, proto.Unmarshal(encoded, got))
	if message(t, want, wanted); !proto.Equal(got, wanted) {
		t.Errorf("got\n %s, want\n %s", protojson.MarshalOptions{UseProtoNames: true}.Format(got), want)
	}
}

func (e *vectorError) is(t testing.TB, err error) {
	t.Helper()
	got := agora.AsError(err)
	if got == nil || got.Code != e.Code || got.Message != e.Message {
		t.Errorf("got %v, want %+v", err, *e)
	}
}
