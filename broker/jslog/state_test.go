package jslog

import (
	"encoding/json"
	"testing"
)

func TestOnlyALeaderIsBelieved(t *testing.T) {
	for answer, want := range map[string]bool{
		`{"leader":"a","replicas":[{"name":"b"},{"name":"c"}]}`: true,
		`{"leader":"a","replicas":[{"name":"a"},{"name":"c"}]}`: false, // b says so
		`{"leader":"a"}`: true,
		`{"replicas":[{"name":"a"},{"name":"b"},{"name":"c"}]}`: false,
		`{}`: false,
	} {
		var r raft
		if err := json.Unmarshal([]byte(answer), &r); err != nil {
			t.Fatal(err)
		}
		if r.led() != want {
			t.Errorf("%s: led %v, want %v", answer, !want, want)
		}
	}
}
