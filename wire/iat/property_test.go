package iat

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strconv"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

// oddValues stand at every place of random envelopes: what is right there, and what is not.
var oddValues = []string{
	`null`, `true`, `false`, `0`, `-0`, `1`, `3`, `-1`, `1.0`, `1e2`, `9007199254740991`, `9007199254740992`, `86400000`, `86400001`, `1e999999999`,
	`""`, `"m-1"`, `"bob"`, `"agora"`, `"\u0062ob"`, `"b\u0000b"`, `"\ud83d"`, `"\ud83d\ude00"`, `"request"`, `"response"`, `"chunk"`, `"notificati\u006fn"`, `"Request"`,
	`"register"`, `"execute"`, `"bearer x"`, `"/src"`, `"stored"`, `["stored"]`, `["stored","acked"]`, `["read"]`, `[]`, `[1, 2]`, `{}`, `{ "a" : 1.50 }`,
	`{"action":"register"}`, `{"action":"log","action":1}`, `{"action":"\udc00"}`, `{"acti\u006fn":"dance"}`, `{"action":7}`, `{"a":{"action":"register"}}`,
	`{"text":"w"}`, `[[[[[[]]]]]]`, `"` + strings.Repeat("é", 129) + `"`, `"` + strings.Repeat("x", 257) + `"`,
}

// shape is which members an object has in random envelopes.
type shape struct{ must, may, odd []string }

var (
	topShape    = shape{[]string{"header", "payload"}, []string{"metadata", "other"}, []string{"payload", "header", `head\u0065r`, "metadata", `\ud83d`}}
	headerShape = shape{
		[]string{"msg_id", "type", "to", "parent_id"}, []string{"from", "timestamp", "x"},
		[]string{"msg_id", "to", `msg\u005fid`, `t\u006f`, "type", `\ud83d`, ""},
	}
	metadataShape = shape{
		nil, []string{"trace_id", "ttl", "auth_token", "deadline_ms", "receipts", "workspace_root", "redelivered", `\u0078`, "y"},
		[]string{"ttl", `tt\u006c`, `\u0061uth_token`, "receipts", `\udc00`, "y"},
	}
)

var spaces = rapid.SampledFrom([]string{"", "", "", " ", "\n\t", " \r\n"})

// object draws an object that has some members, mostly those that it must have.
func object(t *rapid.T, of shape, value func(key string) string) string {
	var members []string
	for _, k := range of.must {
		if rapid.IntRange(0, 40).Draw(t, "leave out") != 17 {
			members = append(members, k)
		}
	}
	for _, k := range of.may {
		if rapid.IntRange(0, 2).Draw(t, "there") == 0 {
			members = append(members, k)
		}
	}
	if rapid.IntRange(0, 9).Draw(t, "odd key") == 7 {
		members = append(members, rapid.SampledFrom(of.odd).Draw(t, "more"))
	}
	members = rapid.Permutation(members).Draw(t, "order")
	var b strings.Builder
	b.WriteString("{" + spaces.Draw(t, "space"))
	for i, k := range members {
		if i > 0 {
			b.WriteString(spaces.Draw(t, "space") + "," + spaces.Draw(t, "space"))
		}
		b.WriteString(`"` + k + `"` + spaces.Draw(t, "space") + ":" + spaces.Draw(t, "space") + value(k))
	}
	return b.String() + spaces.Draw(t, "space") + "}"
}

// right is what mostly stands at a key.
var right = map[string][]string{
	"msg_id": {`"m-1"`, `"\u006d"`}, "type": {`"request"`, `"response"`, `"notification"`, `"chunk"`}, "from": {`"al"`}, "to": {`"bob"`, `"b b"`},
	"parent_id": {`"m-0"`}, "trace_id": {`"t"`, `{"a":1}`}, "ttl": {`3`, `null`}, "auth_token": {`"bearer x"`}, "deadline_ms": {`250`},
	"receipts": {`["stored"]`},
}

func envelopes(t *rapid.T) string {
	odd := func(key string) string {
		if good := right[key]; good != nil && rapid.IntRange(0, 30).Draw(t, "odd") != 17 {
			return rapid.SampledFrom(good).Draw(t, key)
		}
		return rapid.SampledFrom(oddValues).Draw(t, key)
	}
	text := spaces.Draw(t, "space") + object(t, topShape, func(key string) string {
		switch {
		case rapid.IntRange(0, 30).Draw(t, "odd") == 17:
		case key == "header":
			return object(t, headerShape, odd)
		case key == "metadata":
			return object(t, metadataShape, odd)
		}
		return rapid.SampledFrom(oddValues).Draw(t, key)
	}) + spaces.Draw(t, "space")
	switch rapid.IntRange(0, 24).Draw(t, "damage") {
	case 11:
		return text[:rapid.IntRange(0, len(text)).Draw(t, "cut")]
	case 12:
		return text + rapid.SampledFrom([]string{"x", "{}", "\x00", "\xff"}).Draw(t, "trailing")
	}
	return text
}

func TestDecodeDecidesAsASlowReaderDoes(t *testing.T) {
	const depth = 7
	taken := 0
	thousand(t, func(t *rapid.T) {
		text := envelopes(t)
		want, ok := refTakes([]byte(text), depth)
		var got Envelope
		err := Decode([]byte(text), &got, Limits{Depth: depth})
		if (err == nil) != ok {
			t.Fatalf("%s\n is decided as %v, want %v", text, err, ok)
		}
		if err != nil {
			if f, isFault := errors.AsType[*Fault](err); !isFault || f.Err.Code != agora.InvalidRequest || f.Err.Message == "" {
				t.Fatalf("%s\n is refused with %v", text, err)
			}
			return
		}
		taken++
		got.splice, got.Token = splice{}, ""
		if !bytes.Equal(got.Payload, want.Payload) || (got.Payload == nil) != (want.Payload == nil) {
			t.Fatalf("%s\n has the payload %q, want %q", text, got.Payload, want.Payload)
		}
		got.Payload, want.Payload = nil, nil
		if got, want := asText(got), asText(want); got != want {
			t.Fatalf("%s\n is read as\n %s, want\n %s", text, got, want)
		}
	})
	if taken < 100 {
		t.Errorf("%d envelopes were taken, want hundreds", taken)
	}
}

func asText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

// thousand has a property checked a thousand times.
func thousand(t *testing.T, prop func(*rapid.T)) {
	t.Helper()
	for range 10 {
		rapid.Check(t, prop) // a hundred times, unless a flag says otherwise
	}
}

func TestWhatIsDeliveredKeepsItsBytes(t *testing.T) {
	thousand(t, func(t *rapid.T) {
		text := envelopes(t)
		var e Envelope
		if Decode([]byte(text), &e, Limits{}) != nil {
			return
		}
		from := agora.AgentID(rapid.SampledFrom([]string{"al", `a"l\`, "é😀"}).Draw(t, "bound"))
		root := rapid.SampledFrom([]string{"", "/src", `/a "b"`}).Draw(t, "root")
		d := Delivery{Redelivered: rapid.Bool().Draw(t, "again"), DeadlineMS: rapid.SampledFrom([]int64{0, 250}).Draw(t, "deadline")}
		m := agora.Message{Body: e.Payload, Meta: agora.Meta{Dialect: Dialect, Head: e.AppendHead(nil, from, root)}}
		out := AppendEnvelope(nil, &m, d)
		if !json.Valid(out) {
			t.Fatalf("%s\n is delivered as\n %s", text, out)
		}
		before, after := reference([]byte(text)), reference(out)
		if !bytes.Equal(before.values["payload"], after.values["payload"]) || len(after.values) != len(after.keys) {
			t.Fatalf("%s\n is delivered as\n %s", text, out)
		}
		sameHeader(t, reference(before.values["header"]), reference(after.values["header"]), from)
		sameMetadata(t, reference(before.values["metadata"]), reference(after.values["metadata"]), map[string]string{
			"workspace_root": strings.Repeat(asText(root), min(len(root), 1)), "redelivered": strings.Repeat("true", count(d.Redelivered)),
			"deadline_ms": strings.Repeat("250", count(d.DeadlineMS > 0)),
		})
		var again Envelope
		if err := Decode(out, &again, Limits{}); err != nil && e.TTL != 1 {
			t.Fatalf("%s\n is no envelope: %v", out, err)
		}
	})
}

func count(b bool) int {
	if b {
		return 1
	}
	return 0
}

func sameHeader(t *rapid.T, before, after *ref, from agora.AgentID) {
	var id string
	if json.Unmarshal(after.values["from"], &id) != nil || id != string(from) {
		t.Fatalf("the sender is %s, want %q", after.values["from"], from)
	}
	others := func(k string) bool { return k == "from" }
	same(t, before, after, slices.DeleteFunc(slices.Clone(before.keys), others), slices.DeleteFunc(slices.Clone(after.keys), others))
}

// sameMetadata checks that metadata have what they had, but for what is Agora's, which is as in added; "" for what is not there.
func sameMetadata(t *rapid.T, before, after *ref, added map[string]string) {
	if before == nil {
		before = &ref{}
	}
	if after == nil {
		after = &ref{}
	}
	for key, want := range added {
		if got := string(after.values[key]); got != want {
			t.Fatalf("metadata has %s: %q, want %q", key, got, want)
		}
	}
	if ttl, ok := before.number("ttl", 1<<53); ok && ttl > 0 {
		if got := string(after.values["ttl"]); got != strconv.FormatUint(ttl-1, 10) {
			t.Fatalf("ttl %d became %s", ttl, got)
		}
		after.values["ttl"] = before.values["ttl"]
	}
	ours := func(k string) bool {
		return slices.Contains([]string{"auth_token", "receipts", "deadline_ms", "redelivered", "workspace_root"}, k)
	}
	same(t, before, after, slices.DeleteFunc(slices.Clone(before.keys), ours), slices.DeleteFunc(slices.Clone(after.keys), ours))
}

// same checks that the members of these keys are the same ones, in the same order.
func same(t *rapid.T, before, after *ref, old, now []string) {
	if !slices.Equal(old, now) {
		t.Fatalf("the keys %q became %q", old, now)
	}
	for _, k := range old {
		if !bytes.Equal(before.values[k], after.values[k]) {
			t.Fatalf("%s of %q became %s", before.values[k], k, after.values[k])
		}
	}
}
