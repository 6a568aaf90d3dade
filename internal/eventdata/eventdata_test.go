package eventdata

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// vector is one file of wire/testdata/data: what becomes of the data of a publish.
type vector struct {
	About     string       `json:"about"`
	Data      string       `json:"data"`
	Publisher string       `json:"publisher"`
	Now       int64        `json:"now"`
	Event     string       `json:"event"` // the data of the event
	Error     *vectorError `json:"error"`
	Threshold int          `json:"threshold"` // set where the vector is about cutting
	Deltas    []string     `json:"deltas"`    // the data of the deltas
}

// vectorError is what refusing data looks like: part of the message.
type vectorError struct {
	Code    agora.Code `json:"code"`
	Message string     `json:"message"`
}

// vectors returns the vectors by the names of their files.
func vectors(t testing.TB) map[string]*vector {
	t.Helper()
	paths, err := filepath.Glob("../../wire/testdata/data/*.json")
	if err != nil || len(paths) == 0 {
		t.Fatalf("no vectors: %v", err)
	}
	all := map[string]*vector{}
	for _, path := range paths {
		b, err := os.ReadFile(path)
		must(t, err)
		d := json.NewDecoder(bytes.NewReader(b))
		d.DisallowUnknownFields()
		v := new(vector)
		if err := d.Decode(v); err != nil {
			t.Fatalf("%s: %v", path, err)
		}
		all[filepath.Base(path)] = v
	}
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func TestDataVectors(t *testing.T) {
	for name, v := range vectors(t) {
		t.Run(name, func(t *testing.T) {
			if v.Threshold > 0 {
				v.testSplit(t)
			} else {
				v.testEvent(t)
			}
		})
	}
}

func (v *vector) testEvent(t *testing.T) {
	got, err := Sign(json.RawMessage(v.Data), agora.AgentID(v.Publisher), v.Now)
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

func (v *vector) testSplit(t *testing.T) {
	var got []string
	for _, d := range Split(json.RawMessage(v.Data), v.Threshold) {
		got = append(got, string(d))
	}
	if !slices.Equal(got, v.Deltas) {
		t.Errorf("cut into\n %q, want\n %q", got, v.Deltas)
	}
}

func TestSignDeltaKeepsNoForeignSender(t *testing.T) {
	for data, want := range map[string]string{
		`{"text":"x"}`: `{"text":"x"}`,
		`{"from":"a", "text":"x","fr\u006fm":"b"}`:  `{"from":"me", "text":"x"}`,
		` {"a":[1.0],"text":"\u00e9","from":null} `: ` {"a":[1.0],"text":"\u00e9","from":"me"} `,
	} {
		got, err := SignDelta(json.RawMessage(data), "me")
		if err != nil || string(got) != want {
			t.Errorf("SignDelta(%s) = %s, %v, want %s", data, got, err, want)
		}
	}
	for _, data := range []string{``, `[]`, `{}`, `{"text":1}`, `{"text":"a","text":"b"}`, `{"text":"a"`, "{\"text\":\"\xff\"}"} {
		if got, err := SignDelta(json.RawMessage(data), "me"); err == nil {
			t.Errorf("SignDelta(%q) = %s, want an error", data, got)
		}
	}
}
