package iat_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
)

// An approval has as much in it as an agent has written, and the list of all of them no more than an answer may have.
func TestApprovalsAreListedInPages(t *testing.T) {
	t.Parallel()
	s := open(t, setup{Options: agoratest.Options{Edges: 1}})
	const asked = 20
	for i := range asked {
		payload := fmt.Sprintf(`{"action":"require_approval","what":%q}`, strings.Repeat("x", 240<<10))
		s.start(t, post(0, said{id: fmt.Sprint("q", i), kind: "request", from: fmt.Sprint("al-", i%2), to: "agora", payload: payload}.String()))
		s.isPending(t, fmt.Sprint("q", i), "")
	}
	var got []string
	pages := 0
	for next := ""; pages == 0 || next != ""; pages++ {
		path := "/a2a/approvals?state=pending"
		if next != "" {
			path += "&after=" + next
		}
		a := s.ask(t, call{path: path})
		if len(a.body) > web.MaxListing+1<<10 {
			t.Errorf("a page has %d bytes", len(a.body))
		}
		var page struct {
			Approvals []struct{ ID string }
			More      bool
			Next      string
		}
		if err := json.Unmarshal([]byte(a.body), &page); err != nil {
			t.Fatal(err)
		}
		for _, q := range page.Approvals {
			got = append(got, q.ID)
		}
		if next = page.Next; page.More != (next != "") {
			t.Errorf("more is %v, and next %q", page.More, next)
		}
	}
	for i, id := range got {
		if id != fmt.Sprint("q", i) {
			t.Errorf("approval %d is %s", i, id)
		}
	}
	if len(got) != asked || pages != 2 {
		t.Errorf("%d approvals of %d on %d pages", len(got), asked, pages)
	}
	if a := s.ask(t, call{path: "/a2a/approvals?after=x"}); a.status != 400 {
		t.Errorf("behind nothing that there is: %d %s", a.status, a.body)
	}
}
