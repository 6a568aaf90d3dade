package cli

import (
	"testing"
	"time"
)

func TestWhoHasGivenUpWaitsForNoAnswer(t *testing.T) {
	t.Parallel()
	now := time.Now()
	talk := &conversation{asked: []question{{from: "alice", deadline: now.Add(-time.Second)}, {from: "carol", deadline: now.Add(time.Hour)}}}
	if to, _, err := talk.addressee("noon"); to != "carol" || err != nil {
		t.Errorf("it answers %q, %v, want carol", to, err)
	}
}
