package approval

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

func TestTheAgentThatIsAskedDecidesByItsReply(t *testing.T) {
	t.Parallel()
	a, b, tenant := pair(t, nil)
	ask(t, a, request(tenant, "1"))
	answer := func(from agora.AgentID, body string) (Approval, error) {
		return b.Answer(await.Context(t), &agora.Message{Kind: agora.Reply, From: from, To: agora.ToBox(tenant, Box(tenant, "sub", "1"), "sub"), Body: []byte(body)})
	}
	_, err := answer("sub", `{"approved":true}`)
	wantCode(t, "the asker's own", err, agora.Forbidden)
	_, err = answer("joe", `{"approved":true}`)
	wantCode(t, "another's", err, agora.Forbidden)
	for _, bad := range []string{
		``, `null`, `true`, `[]`, `{}`, `"approved"`, `{"approved":1}`, `{"approved":"true"}`, `{"approved":null}`, `{"Approved":true}`,
		`{"approved":true,"approved":false}`, `{"approved":true`, `{"approved":true}}`, `{"approved":true} x`, `{"x":{"approved":true}}`, `{"approved":true,"note":1}`,
		`{"approved":true,"note":"a","note":"b"}`,
	} {
		_, err := answer("host", bad)
		wantCode(t, bad, err, agora.InvalidRequest)
	}
	_, err = answer("host", `{"approved":true,"x":"`+strings.Repeat("x", MaxAnswer)+`"}`)
	wantCode(t, "a long one", err, agora.MessageTooLarge)
	_, err = answer("host", `{"approved":true,"note":"`+strings.Repeat("x", MaxNote+1)+`"}`)
	wantCode(t, "a long note", err, agora.InvalidRequest)
	body := ` {"why": 1e400, "note":"fine", "approved" : true}`
	d, err := answer("host", body)
	if err != nil || d.State != Approved || d.By != "host" || d.Note != "fine" || string(d.Answer) != body {
		t.Errorf("Answer = %+v, %v", d, err)
	}
	if d, err := answer("host", body); err != nil || d.State != Approved {
		t.Errorf("the same again: %+v, %v", d, err)
	}
	if _, err := answer("host", `{"approved":false}`); !errors.Is(err, ErrDecided) {
		t.Errorf("otherwise: %v", err)
	}
	_, err = b.Answer(t.Context(), &agora.Message{From: "host", To: agora.ToBox(tenant, Box(tenant, "sub", "2"), "sub"), Body: []byte(body)})
	wantCode(t, "the answer to nothing", err, agora.NotFound)
}

func TestABoxHasANameOfItsOwn(t *testing.T) {
	all := map[string]bool{}
	for _, c := range [][3]string{{"a", "b", "c"}, {"ab", "", "c"}, {"a", "bc", ""}, {"", "a", "bc"}, {"a", "b", "c "}} {
		box := Box(c[0], agora.AgentID(c[1]), c[2])
		if !IsBox(box) || all[box] || box != Box(c[0], agora.AgentID(c[1]), c[2]) {
			t.Errorf("the box of %q is %q", c, box)
		}
		all[box] = true
	}
	for _, name := range []string{"", "a", "n" + strings.Repeat("0", 40), "a" + strings.Repeat("0", 39), "a" + strings.Repeat("G", 40), "c" + strings.Repeat("A", 26)} {
		if IsBox(name) {
			t.Errorf("%q is taken for a box", name)
		}
	}
}

func FuzzVerdict(f *testing.F) {
	f.Add([]byte(`{"approved":true,"note":"x"}`))
	f.Add([]byte(`{"approved":1e999999}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		v, err := ParseVerdict(body)
		var as map[string]any
		if err == nil && (json.Unmarshal(body, &as) != nil && !strings.Contains(string(body), "e") && !strings.Contains(string(body), "E") || as != nil && as["approved"] != v.Approved) {
			t.Errorf("%q is read as %+v", body, v)
		}
	})
}
