package aip

import (
	"bytes"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

// thousand has a property checked a thousand times.
func thousand(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, prop) // a hundred times, unless a flag says otherwise
	}
}

// wireFields draws encoded fields: those of a message, of the right kind and of wrong ones, several times and in any order, and unknown ones.
func wireFields(t *rapid.T) []byte {
	var b []byte
	for range rapid.IntRange(0, 12).Draw(t, "fields") {
		number := protowire.Number(rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7, 8, 9, 99, 1 << 20}).Draw(t, "number"))
		switch rapid.IntRange(0, 9).Draw(t, "kind") {
		case 0:
			b = protowire.AppendVarint(protowire.AppendTag(b, number, protowire.VarintType), rapid.Uint64().Draw(t, "varint"))
		case 1:
			b = protowire.AppendFixed32(protowire.AppendTag(b, number, protowire.Fixed32Type), 7)
		case 2:
			b = protowire.AppendFixed64(protowire.AppendTag(b, number, protowire.Fixed64Type), 7)
		case 3:
			b = protowire.AppendTag(b, number, protowire.StartGroupType)
			b = protowire.AppendVarint(protowire.AppendTag(b, 1, protowire.VarintType), 1)
			b = protowire.AppendTag(b, number, protowire.EndGroupType)
		case 4:
			b = protowire.AppendVarint(protowire.AppendTag(b, 4, protowire.VarintType), rapid.Uint64Range(0, 6).Draw(t, "status"))
		case 5:
			item := appendItems(nil, fieldContent, []Item{{Mode(rapid.IntRange(0, 4).Draw(t, "mode")), []byte(rapid.SampledFrom([]string{"", "x", "é", "\xff"}).Draw(t, "data"))}})
			b = append(b, item...)
		default:
			b = appendField(b, number, rapid.SampledFrom([]string{"", "a", "alice", "é😀", "\xff", "\x08\x01"}).Draw(t, "text"))
		}
	}
	switch rapid.IntRange(0, 20).Draw(t, "damage") {
	case 7:
		return b[:rapid.IntRange(0, len(b)).Draw(t, "cut")]
	case 8:
		return append(b, rapid.SliceOfN(rapid.Byte(), 1, 4).Draw(t, "trailing")...)
	}
	return b
}

// sameAsProto checks that the routing fields are those that protobuf reads, and that what it takes is taken.
func sameAsProto(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw []byte,
) {
	t.Helper()
	var m AgentMessage
	e, err := ReadEnvelope(raw)
	if bad := proto.Unmarshal(raw, &m); bad == nil {
		if err != nil {
			t.Fatalf("%x is refused: %v", raw, err)
		}
		if string(e.Sender) != m.GetSenderId() || string(e.Receiver) != m.GetReceiverId() || string(e.Session) != m.GetSessionId() || e.Status != m.GetSessionStatus() {
			t.Fatalf("%x is read as %+v, want %v", raw, e, &m)
		}
		sameContent(t, raw, &m)
	}
	var r ToolRequest
	if proto.Unmarshal(raw, &r) == nil {
		e, err := ReadToolEnvelope(raw)
		if err != nil {
			t.Fatalf("%x is refused: %v", raw, err)
		}
		if string(e.Sender) != r.GetSenderId() || string(e.Receiver) != r.GetReceiverId() || string(e.Session) != r.GetSessionId() ||
			string(e.Tool) != r.GetToolName() || string(e.Arguments) != r.GetArguments() {
			t.Fatalf("%x is read as %+v, want %v", raw, e, &r)
		}
	}
}

// sameContent checks that the content is that which protobuf reads.
func sameContent(t interface {
	Helper()
	Fatalf(string, ...any)
}, raw []byte, m *AgentMessage,
) {
	t.Helper()
	items, err := Items(raw)
	if len(m.GetContent()) > MaxItems && isCode(err, agora.MessageTooLarge) {
		return
	}
	if err != nil {
		t.Fatalf("the content of %x is refused: %v", raw, err)
	}
	var want []Item
	for _, c := range m.GetContent() {
		switch d := c.GetData().(type) {
		case *ContentItem_Text:
			want = append(want, Item{Mode_TEXT, []byte(d.Text)})
		case *ContentItem_Image:
			want = append(want, Item{Mode_IMAGE, d.Image})
		case *ContentItem_Audio:
			want = append(want, Item{Mode_AUDIO, d.Audio})
		case *ContentItem_Embedded:
			want = append(want, Item{Mode_EMBEDDED, d.Embedded})
		}
	}
	if !sameItems(items, want) {
		t.Fatalf("the content of %x is %v, want %v", raw, items, want)
	}
}

func sameItems(a, b []Item) bool {
	if len(a) != len(b) {
		return false
	}
	for n := range a {
		if a[n].Mode != b[n].Mode || !bytes.Equal(a[n].Data, b[n].Data) {
			return false
		}
	}
	return true
}

func TestRoutingFieldsAreReadAsProtobufReadsThem(t *testing.T) {
	thousand(t, func(t *rapid.T) { sameAsProto(t, wireFields(t)) })
}

func TestAMessageThatIsReaddressedKeepsAllElse(t *testing.T) {
	thousand(t, func(t *rapid.T) {
		raw := wireFields(t)
		var before, after AgentMessage
		if proto.Unmarshal(raw, &before) != nil {
			return
		}
		e, err := ReadEnvelope(raw)
		if err != nil {
			t.Fatal(err)
		}
		names := rapid.SampledFrom([]string{"", "alice", "bob b", string(e.Sender), string(e.Receiver)})
		is := Route{names.Draw(t, "sender"), names.Draw(t, "receiver")}
		got := Readdress(raw, is, e.Route())
		if err := proto.Unmarshal(got, &after); err != nil {
			t.Fatal(err)
		}
		before.SenderId, before.ReceiverId = is.Sender, is.Receiver
		if !bytes.HasPrefix(got, raw) || !proto.Equal(&before, &after) || !bytes.Equal(before.ProtoReflect().GetUnknown(), after.ProtoReflect().GetUnknown()) {
			t.Fatalf("%x became %x: %v", raw, got, &after)
		}
		if is == e.Route() && len(got) != len(raw) {
			t.Fatalf("%x became %x, though nothing changes", raw, got)
		}
	})
}

func TestMalformedBytesAreRefused(t *testing.T) {
	for name, raw := range map[string]string{
		"a cut field": "\x0a\x05ab", "a cut varint": "\x20\x80", "no UTF-8": "\x0a\x01\xff", "field 0": "\x00\x00", "the end of a group": "\x0c", "a reserved kind": "\x0f",
	} {
		if _, err := ReadEnvelope([]byte(raw)); !isCode(err, "INVALID_REQUEST") {
			t.Errorf("%s: %v, want INVALID_REQUEST", name, err)
		}
		if _, err := ReadToolEnvelope([]byte(raw)); !isCode(err, "INVALID_REQUEST") && name != "a cut varint" {
			t.Errorf("%s: %v, want INVALID_REQUEST", name, err)
		}
	}
}

func TestReadingRoutingFieldsAllocatesNothing(t *testing.T) {
	raw := (&Message{Sender: "alice", Receiver: "bob", Session: "s-1", Status: AgentMessage_HOLD_QUEST, Content: []Item{{Mode_TEXT, []byte("words")}, {Mode_IMAGE, make([]byte, 1000)}}}).Append(nil)
	if n := testing.AllocsPerRun(100, func() {
		if e, err := ReadEnvelope(raw); err != nil || string(e.Session) != "s-1" {
			t.Fatalf("read %+v, %v", e, err)
		}
	}); n != 0 {
		t.Errorf("ReadEnvelope allocates %v times, want 0", n)
	}
}
