package iat

import (
	"bytes"
	"encoding/json"
	"errors"
	"testing"
	"unicode/utf8"

	"github.com/agora-relay/agora"
)

// FuzzDecode holds that decoding never panics, that it decides as a slow reader does that what it takes is an envelope, and that
// what is delivered is one again, with the payload byte for byte.
func FuzzDecode(f *testing.F) {
	for _, v := range load(f) {
		if v.Message == nil {
			f.Add(v.bytes(f))
		}
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var e, again Envelope
		err := Decode(b, &e, Limits{})
		if err != nil {
			checkFault(t, err)
			return
		}
		if _, ok := refTakes(b, 64); !ok {
			t.Fatalf("took %q", b)
		}
		m := agora.Message{Body: e.Payload, Meta: agora.Meta{Dialect: Dialect, Head: e.AppendHead(nil, "al", "/src")}}
		out := AppendEnvelope(nil, &m, Delivery{Redelivered: true, DeadlineMS: 7})
		if !json.Valid(out) || !utf8.Valid(out) {
			t.Fatalf("%q is delivered as %q", b, out)
		}
		if err := Decode(out, &again, Limits{}); err != nil && e.TTL != 1 {
			t.Fatalf("%q is delivered as %q: %v", b, out, err)
		}
		if err == nil && e.TTL != 1 && (string(again.Payload) != string(e.Payload) || again.From != "al" || again.ID != e.ID || again.Token != "") {
			t.Fatalf("%q is delivered as %q", b, out)
		}
	})
}

// FuzzTokenScan holds that the token that is found while an envelope comes, byte by byte, is the one that the whole envelope has.
func FuzzTokenScan(f *testing.F) {
	for _, v := range load(f) {
		if v.Message == nil {
			f.Add(v.bytes(f))
		}
	}
	for _, b := range []string{
		`{"metadata":{"auth_token":"bearer  abc"},"payload":{}}`, `{"metad\u0061ta":{"x":{"auth_token":"no"},"auth_t\u006fken":"a\"b"}}`,
		`{"payload":{"metadata":{"auth_token":"no"}},"metadata":{"l":["auth_token",{"auth_token":"no"}],"auth_token":"yes"}}`,
		`["metadata",{"auth_token":"no"}]`, `{"auth_token":"no","metadata":["auth_token"],"header":{"auth_token":"no"}}`, `{"metadata":{"auth_token":null}}`,
	} {
		f.Add([]byte(b))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		var whole, pieces TokenScan
		token, over := whole.Next(b)
		found, ends := "", false
		for n := range len(b) + 1 {
			if found, ends = pieces.Next(b[:n]); found != "" || ends {
				break
			}
		}
		if found != token || ends != over {
			t.Fatalf("%q in pieces has %q, %v, and at once %q, %v", b, found, ends, token, over)
		}
		var e Envelope
		if Decode(b, &e, Limits{}) == nil && e.Token != token {
			t.Fatalf("%q has the token %q, found is %q", b, e.Token, token)
		}
	})
}

func checkFault(t *testing.T, err error) {
	t.Helper()
	f, ok := errors.AsType[*Fault](err)
	if !ok || f.Err.Code != agora.InvalidRequest || f.Err.Message == "" {
		t.Fatalf("refused with %v", err)
	}
	if told := AppendFault(nil, Said{ID: "e"}, err); !json.Valid(told) || !utf8.Valid(told) {
		t.Fatalf("it is told as %q", told)
	}
}

// FuzzCheckAction holds that the check of an action never panics, whatever the payload, and that what is read of it is JSON.
func FuzzCheckAction(f *testing.F) {
	for _, v := range load(f) {
		var e Envelope
		if v.Message == nil && Decode(v.bytes(f), &e, Limits{}) == nil && e.Payload != nil {
			f.Add(e.Action, []byte(e.Payload))
		}
	}
	f.Fuzz(func(t *testing.T, action string, payload []byte) {
		if !json.Valid(payload) || !utf8.Valid(payload) || depthOf(payload) > 64 {
			return
		}
		payload = bytes.Trim(payload, " \t\r\n") // as Decode keeps it
		for kind := Request; kind <= Chunk; kind++ {
			e := Envelope{ID: "m", Type: kind, Action: action, Payload: payload}
			if err := CheckAction(&e); err != nil {
				checkFault(t, err)
			}
		}
		readEverything(t, payload)
	})
}

// readEverything reads a payload as if it were that of each action.
func readEverything(t *testing.T, payload []byte) {
	t.Helper()
	Approved(payload)
	e := Envelope{Payload: payload}
	if c, err := e.ToolCall(); err == nil && (c.Name == "" || c.Arguments != nil && !json.Valid(c.Arguments)) {
		t.Fatalf("%s calls %q with %s", payload, c.Name, c.Arguments)
	}
	if x, err := e.Execute(); err == nil && x.Limited != (x.Allowed != nil) {
		t.Fatalf("%s allows %v, %v", payload, x.Limited, x.Allowed)
	}
	r, err := e.Registration()
	if err != nil {
		checkFault(t, err)
		return
	}
	for _, tool := range r.Tools {
		if tool.Name == "" || tool.Input != nil && !json.Valid(tool.Input) || tool.Output != nil && !json.Valid(tool.Output) {
			t.Fatalf("%s has the tool %+v", payload, tool)
		}
	}
	if r.Root != "" && r.Root[0] != '/' {
		t.Fatalf("%s has the root %q", payload, r.Root)
	}
}
