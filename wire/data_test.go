package wire

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// dataVector is one file of testdata/data: what becomes of the data of a publish.
type dataVector struct {
	About     string       `json:"about"`
	Data      string       `json:"data"`
	Publisher string       `json:"publisher"`
	Now       int64        `json:"now"`
	Event     string       `json:"event"` // the data of the event
	Error     *vectorError `json:"error"`
	Threshold int          `json:"threshold"` // set where the vector is about cutting
	Deltas    []string     `json:"deltas"`    // the data of the deltas
}

func TestDataVectors(t *testing.T) {
	for name, v := range load[dataVector](t, "data") {
		t.Run(name, func(t *testing.T) {
			if v.Threshold > 0 {
				v.testSplit(t)
			} else {
				v.testEvent(t)
			}
		})
	}
}

func (v *dataVector) testEvent(t *testing.T) {
	got, err := EventData(json.RawMessage(v.Data), agora.AgentID(v.Publisher), v.Now)
	if v.Error != nil {
		if e := agora.AsError(err); e == nil || e.Code != v.Error.Code || !strings.Contains(e.Message, v.Error.Message) {
			t.Errorf("got %v, want %s: …%s…", err, v.Error.Code, v.Error.Message)
		}
		return
	}
	must(t, err)
	if string(got) != v.Event {
		t.Errorf("event is\n %s, want\n %s", got, v.Event)
	}
}

func (v *dataVector) testSplit(t *testing.T) {
	var got []string
	for _, d := range SplitText(json.RawMessage(v.Data), v.Threshold) {
		got = append(got, string(d))
	}
	if !slices.Equal(got, v.Deltas) {
		t.Errorf("cut into\n %q, want\n %q", got, v.Deltas)
	}
}

func TestDeltaDataKeepsNoForeignSender(t *testing.T) {
	for data, want := range map[string]string{
		`{"text":"x"}`: `{"text":"x"}`,
		`{"from":"a", "text":"x","fr\u006fm":"b"}`:  `{"from":"me", "text":"x"}`,
		` {"a":[1.0],"text":"\u00e9","from":null} `: ` {"a":[1.0],"text":"\u00e9","from":"me"} `,
	} {
		got, err := DeltaData(json.RawMessage(data), "me")
		if err != nil || string(got) != want {
			t.Errorf("DeltaData(%s) = %s, %v, want %s", data, got, err, want)
		}
	}
	for _, data := range []string{``, `[]`, `{}`, `{"text":1}`, `{"text":"a","text":"b"}`, `{"text":"a"`, "{\"text\":\"\xff\"}"} {
		if got, err := DeltaData(json.RawMessage(data), "me"); err == nil {
			t.Errorf("DeltaData(%q) = %s, want an error", data, got)
		}
	}
}

func TestRequestIDOf(t *testing.T) {
	for payload, want := range map[string]string{
		``:                                    "",
		`null`:                                "",
		`"request_id"`:                        "",
		`{"a":{"request_id":"r"}}`:            "",
		`{"request_id":7}`:                    "",
		`{"request_id":"r","request_id":"r"}`: "",
		`{"a":1,"request_id":"r-1","b":2}`:    "r-1",
		`{"request\u005fid":"r\n1"}`:          "r\n1",
		`{"request_id":"r\ud83d"}`:            "", // no error could repeat it
		`{"\ud83d":1,"request_id":"\ud83d\ude00"}`: "😀",
		`{"request_id":"` + long(257) + `"}`:       "",
		`{"request_id":"` + long(256) + `"}`:       long(256),
		`{"action":"x","body":{"q":"\u00e9"}}`:     "",
	} {
		if got := RequestIDOf(json.RawMessage(payload)); got != want {
			t.Errorf("RequestIDOf(%.60s) = %q, want %q", payload, got, want)
		}
	}
}

func long(n int) string { return strings.Repeat("é", n) }
