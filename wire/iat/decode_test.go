package iat

import (
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
)

func TestLimitsBoundWhatIsTaken(t *testing.T) {
	l := Limits{Depth: 3, Name: 4}
	for envelope, want := range map[string]string{
		`{"header":{"msg_id":"éééé","type":"request","to":"agent"},"payload":[[1]]}`:                "",
		`{"header":{"msg_id":"ééééé","type":"request","to":"agent"}}`:                               "/header/msg_id is longer than 4 characters",
		`{"header":{"msg_id":"m","parent_id":"ééééé","type":"request","to":"agent"}}`:               "/header/parent_id is longer",
		`{"header":{"msg_id":"m","type":"request","to":"agent"},"metadata":{"trace_id":"ééééé"}}`:   "/metadata/trace_id is longer",
		`{"header":{"msg_id":"m","type":"request","to":"agent"},"metadata":{"trace_id":["ééééé"]}}`: "",
		`{"header":{"msg_id":"m","type":"request","to":"agent"},"payload":[[[1]]]}`:                 "nested too deeply",
		`{"header":{"msg_id":"m","type":"request","to":"agent","x":[[1]]}}`:                         "nested too deeply",
		`{"header":{"msg_id":"m","type":"request","to":"agent"},"metadata":{"x":{"y":{}}}}`:         "nested too deeply",
	} {
		err := Decode([]byte(envelope), new(Envelope), l)
		if want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("Decode(%.90s) = %v, want %q", envelope, err, want)
		}
	}
}

func TestAReusedEnvelopeKeepsNothingOfTheLastOne(t *testing.T) {
	var reused Envelope
	for name, v := range load(t) {
		if v.Message != nil {
			continue
		}
		var fresh Envelope
		err, err2 := Decode(v.bytes(t), &reused, Limits{}), Decode(v.bytes(t), &fresh, Limits{})
		if got, want := asJSON(t, reused), asJSON(t, fresh); got != want || (err == nil) != (err2 == nil) {
			t.Errorf("%s: reused it is\n %s, want\n %s", name, got, want)
		}
		if err != nil && asJSON(t, reused) != asJSON(t, Envelope{}) {
			t.Errorf("%s: refused it is %s", name, asJSON(t, reused))
		}
	}
}

func TestAFaultIsAnErrorOfAgora(t *testing.T) {
	err := Decode([]byte(`{"header":{"msg_id":"m","type":"request","from":"al"}}`), new(Envelope), Limits{})
	if e := agora.AsError(err); e.Code != agora.InvalidRequest || e.Message != "/header/to is missing" {
		t.Errorf("agents see %v", e)
	}
	want := `{"header":{"msg_id":"e-1","parent_id":"m","type":"response","from":"agora","to":"al","timestamp":7},` +
		`"payload":{"error":{"code":"INVALID_REQUEST","message":"/header/to is missing","path":"/header/to"}}}`
	if got := string(AppendFault(nil, Said{ID: "e-1", Time: time.Unix(7, 0)}, err)); got != want {
		t.Errorf("it is told as\n %s, want\n %s", got, want)
	}
}

func TestFaultsAreToldAsFarAsTheyAreKnown(t *testing.T) {
	slow := &agora.Error{Code: agora.RateLimited, Message: `"slower"`, RetryAfter: 1500*time.Microsecond + 1}
	for want, got := range map[string][]byte{
		`{"header":{"msg_id":"e","type":"response","from":"agora"},"payload":{"error":{"code":"RATE_LIMITED","message":"\"slower\"","retry_after_ms":2}}}`:                                                 AppendFault(nil, Said{ID: "e"}, slow),
		`{"header":{"msg_id":"e","parent_id":"p","type":"response","from":"agora","to":"bob"},"payload":{"error":{"code":"UNAVAILABLE","message":"the cluster can't do this now","retry_after_ms":1000}}}`: AppendFault(nil, Said{ID: "e", Parent: "p", To: "bob", Type: Chunk}, errors.New("redis: secret")),
	} {
		if string(got) != want {
			t.Errorf("told as\n %s, want\n %s", got, want)
		}
	}
}

func TestTheClusterSpeaksInEnvelopes(t *testing.T) {
	s := Said{ID: "g", Parent: "m", Type: Response, To: "al", Time: time.Unix(7, 0), Payload: []byte(`{"approved":false}`)}
	want := `{"header":{"msg_id":"g","parent_id":"m","type":"response","from":"agora","to":"al","timestamp":7},"payload":{"approved":false}}`
	if got := string(s.Append(nil)); got != want {
		t.Errorf("it says\n %s, want\n %s", got, want)
	}
}

func TestTokensLoseTheirScheme(t *testing.T) {
	for token, want := range map[string]string{
		"": "", "x": "x", "bearer x": "x", "Bearer x": "x", "BEARER  x": "x", "bearer": "bearer", "bearer ": "", "bearerx": "bearerx", "basic x": "basic x",
	} {
		e := decoded(t, `{"header":{"msg_id":"m","type":"request","to":"b"},"metadata":{"auth_token":"`+token+`"}}`)
		if e.Token != want {
			t.Errorf("of %q the token is %q, want %q", token, e.Token, want)
		}
	}
}
