package agora_test

import (
	"reflect"
	"testing"

	"github.com/agora-relay/agora"
)

var someReceipts = []agora.ReceiptBody{
	{Tier: agora.Delivered, ID: "m 1"},
	{Tier: agora.Acked, Session: "s1", N: 1 << 52},
	{Tier: agora.Stored, Stream: "stream ☃", Index: 1<<32 - 1},
	{Tier: agora.Delivered, Stream: "s"},
}

var someRosters = []agora.RosterBody{
	{Joined: "b", Members: []agora.AgentID{"a", `"b"`, "☃"}},
	{Left: "b", Members: []agora.AgentID{}},
	{Joined: "in a large space"},
	{},
}

func TestBodiesAreReadAsTheyWereWritten(t *testing.T) {
	for _, want := range someReceipts {
		m := want.Message()
		if got, err := m.ReceiptBody(); err != nil || got != want || m.Kind != agora.Receipt {
			t.Errorf("%+v is read as %+v, %v", want, got, err)
		}
		if _, err := m.RosterBody(); err == nil {
			t.Errorf("%+v is read as a roster", want)
		}
	}
	for _, want := range someRosters {
		m := want.Message()
		if got, err := m.RosterBody(); err != nil || !reflect.DeepEqual(got, want) || m.Kind != agora.Roster {
			t.Errorf("%+v is read as %+v, %v", want, got, err)
		}
		if _, err := m.ReceiptBody(); err == nil {
			t.Errorf("%+v is read as a receipt", want)
		}
	}
	for _, want := range []agora.AbortBody{{Code: agora.StreamAborted}, {Code: agora.Timeout, Request: "r 2"}} {
		m := want.Message()
		if got := m.AbortBody(); got != want || m.Part != agora.Abort {
			t.Errorf("%+v is read as %+v", want, got)
		}
	}
}

// Written down: they stand in logs, which newer edges read.
func TestBodiesAreStoredAsEver(t *testing.T) {
	for body, m := range map[string]agora.Message{
		"\x02\x00\x03m 1\x00":     someReceipts[0].Message(),
		"\x04\x01\x02s1\x07":      agora.ReceiptBody{Tier: agora.Acked, Session: "s1", N: 7}.Message(),
		"\x02\x02\x01s\x05":       agora.ReceiptBody{Tier: agora.Delivered, Stream: "s", Index: 5}.Message(),
		"\x01b\x00\x03\x01a\x01b": agora.RosterBody{Joined: "b", Members: []agora.AgentID{"a", "b"}}.Message(),
		"\x00\x01b\x01":           agora.RosterBody{Left: "b", Members: []agora.AgentID{}}.Message(),
		"\x01b\x00\x00":           agora.RosterBody{Joined: "b"}.Message(),
		"TIMEOUT":                 agora.AbortBody{Code: agora.Timeout}.Message(),
		"TIMEOUT r 2":             agora.AbortBody{Code: agora.Timeout, Request: "r 2"}.Message(),
	} {
		if string(m.Body) != body {
			t.Errorf("body is %q, want %q", m.Body, body)
		}
	}
}

func TestBodiesThatWereStoredAsJSONAreRead(t *testing.T) {
	for body, want := range map[string]agora.ReceiptBody{
		`"request_id":"m 1","status":"delivered","to":"b"`:     {Tier: agora.Delivered, ID: "m 1"},
		`"stream_id":"s<","index":3,"status":"acked","to":"b"`: {Tier: agora.Acked, Stream: "s<", Index: 3},
		`"to":"b","n":7,"status":"acked"`:                      {Tier: agora.Acked, Session: "s1", N: 7},
	} {
		m := agora.Message{Kind: agora.Receipt, Body: []byte(body)}
		if want.N > 0 {
			m.Stream = "s1"
		}
		if got, err := m.ReceiptBody(); err != nil || got != want {
			t.Errorf("%s is read as %+v, %v; want %+v", body, got, err, want)
		}
	}
	for body, want := range map[string]agora.RosterBody{
		`"members":["a","\"b\""],"joined":"\"b\"","left":null`: {Joined: `"b"`, Members: []agora.AgentID{"a", `"b"`}},
		`"members":[],"joined":null,"left":"a"`:                {Left: "a", Members: []agora.AgentID{}},
		`"members":null,"joined":"a","left":null`:              {Joined: "a"},
	} {
		m := agora.Message{Kind: agora.Roster, Body: []byte(body)}
		if got, err := m.RosterBody(); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s is read as %+v, %v; want %+v", body, got, err, want)
		}
	}
}

// FuzzBody holds that what can be read is what is written.
func FuzzBody(f *testing.F) {
	for _, r := range someReceipts {
		f.Add(r.Message().Body, true)
	}
	for _, r := range someRosters {
		f.Add(r.Message().Body, true)
	}
	f.Add([]byte(`"to":"b","n":7,"status":"acked"`), false)
	f.Add([]byte(`"members":["a"],"joined":"a","left":null`), false)
	f.Add([]byte("\x00\x00\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01"), true)
	f.Fuzz(func(t *testing.T, body []byte, own bool) {
		media := ""
		if own {
			media = agora.MediaAgora
		}
		m := agora.Message{Kind: agora.Receipt, Body: body, Media: media, Stream: "s1"}
		if r, err := m.ReceiptBody(); err == nil && own {
			again := r.Message()
			if got, err := again.ReceiptBody(); err != nil || got != r {
				t.Fatalf("%+v is read as %+v, %v", r, got, err)
			}
		}
		m.Kind = agora.Roster
		if r, err := m.RosterBody(); err == nil {
			again := r.Message()
			if got, err := again.RosterBody(); err != nil || !reflect.DeepEqual(got, r) {
				t.Fatalf("%+v is read as %+v, %v", r, got, err)
			}
		}
	})
}
