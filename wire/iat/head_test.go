package iat

import (
	"encoding/json"
	"testing"

	"github.com/agora-relay/agora"
)

func decoded(t testing.TB, envelope string) *Envelope {
	t.Helper()
	e := new(Envelope)
	must(t, Decode([]byte(envelope), e, Limits{}))
	return e
}

func TestWhatIsTakenOutOfMetadataLeavesNothingBehind(t *testing.T) {
	for metadata, want := range map[string]string{
		`{}`:                                                         `{}`,
		`{"auth_token":"x"}`:                                         `{}`,
		"{\n\t\"auth_token\" : \"x\"\n}":                             "{\n\t\n}",
		`{"auth_token":"x","a":1}`:                                   `{"a":1}`,
		`{ "auth_token":"x" , "a":1}`:                                `{ "a":1}`,
		`{"a":1,"auth_token":"x"}`:                                   `{"a":1}`,
		`{"a":1 , "auth_token":"x" }`:                                `{"a":1 }`,
		`{"a":1 , "auth_token":"x" , "b":2 }`:                        `{"a":1 , "b":2 }`,
		`{"receipts":[],"auth_token":"","b":2}`:                      `{"b":2}`,
		`{"a":1,"receipts":[],"auth_token":""}`:                      `{"a":1}`,
		`{"redelivered":1,"workspace_root":[2]}`:                     `{}`,
		`{"ttl":7,"auth_token":"x","ttl2":7}`:                        `{"ttl":6,"ttl2":7}`,
		`{"auth_token":"x","ttl":10,"deadline_ms":1,"a":{"ttl":7}}`:  `{"ttl":9,"a":{"ttl":7}}`,
		`{"a":0,"auth_token":"x","b":1,"ttl":1,"receipts":[],"c":2}`: `{"a":0,"b":1,"ttl":0,"c":2}`,
		`{"deadline_ms":1,"a":0,"receipts":[],"b":1,"redelivered":0,"c":2,"auth_token":"","ttl":2}`: `{"a":0,"b":1,"c":2,"ttl":1}`,
		`{"aut\u0068_token":"x","\u0061":1}`: `{"\u0061":1}`,
	} {
		e := decoded(t, `{"header":{"msg_id":"m","type":"request","to":"b"},"metadata":`+metadata+`}`)
		_, got, ok := readHead(e.AppendHead([]byte("before")[6:], "a", ""))
		if !ok || string(got) != want || !json.Valid(got) {
			t.Errorf("of %s stays %s, %v, want %s", metadata, got, ok, want)
		}
	}
}

func TestAHeadThatIsNoneIsNotRead(t *testing.T) {
	e := decoded(t, `{"header":{"msg_id":"m","type":"request","to":"b"},"metadata":{"a":1}}`)
	whole := e.AppendHead(nil, "a", "")
	later := append([]byte{2}, whole[1:]...)
	for name, head := range map[string][]byte{
		"none": nil, "a version": whole[:1], "a later version": later, "a cut header": whole[:20], "cut metadata": whole[:len(whole)-1],
		"a length beyond": {1, 0xff, 0xff, 0xff, 0xff, '{', '}'}, "no object": {1, 0, 0, 0, 2, '[', ']'},
	} {
		m := agora.Message{From: "a", To: agora.ToAgent("", "b"), Body: []byte("1"), Meta: agora.Meta{Dialect: Dialect, Head: head}}
		want := `{"header":{"msg_id":"g","type":"request","from":"a","to":"b"},"metadata":{"ttl":2},"payload":1}`
		if got := string(AppendEnvelope(nil, &m, Delivery{ID: "g"})); got != want {
			t.Errorf("with %s it is delivered as\n %s, want\n %s", name, got, want)
		}
	}
	m := agora.Message{From: "a", To: agora.ToAgent("", "b"), Body: []byte("1"), Meta: agora.Meta{Dialect: "aip", Head: whole}}
	if got, want := string(AppendEnvelope(nil, &m, Delivery{ID: "g"})), `{"header":{"msg_id":"g"`; got[:len(want)] != want {
		t.Errorf("the head of another dialect is read: %s", got)
	}
}

func TestTheLargestHeadFitsInAMessage(t *testing.T) {
	root, from := make([]byte, 0, 4*MaxRoot), make([]byte, 0, agora.MaxIDLength)
	for range MaxRoot {
		root = append(root, "\U0001F600"...)
	}
	for range agora.MaxIDLength {
		from = append(from, '"')
	}
	pad := make([]byte, maxSplice-len(`{"msg_id":"m","type":"request","to":"b","x":""}`))
	for i := range pad {
		pad[i] = 'x'
	}
	e := decoded(t, `{"header":{"msg_id":"m","type":"request","to":"b","x":"`+string(pad)+`"}}`)
	if n := len(e.AppendHead(nil, agora.AgentID(from), string(root))); n > agora.MaxHead {
		t.Errorf("a head has %d bytes, want %d at most", n, agora.MaxHead)
	}
}
