package edge_test

import (
	"context"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
)

// desk hands out principals by token, and takes them back.
type desk struct {
	mu      sync.Mutex // guards the fields below
	known   map[string]edge.Principal
	gone    map[string]error // by id
	version uint64
}

func newDesk(known map[string]edge.Principal) *desk {
	return &desk{known: known, gone: map[string]error{}}
}

// issue makes other principals known.
func (d *desk) issue(known map[string]edge.Principal) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known = known
}

func (d *desk) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	p, ok := d.known[c.Token]
	if !ok || !p.Expires.IsZero() && time.Now().After(p.Expires) {
		return p, agora.Errorf(agora.Unauthorized, "the token is not valid")
	}
	return p, d.gone[p.ID]
}

func (d *desk) Version() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

func (d *desk) Standing(p *edge.Principal) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.gone[p.ID]
}

func (d *desk) take(id string, why error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.gone[id] = why
	d.version++
}

// entered has an agent register with a token.
func entered(t *testing.T, c *agoratest.Cluster, k int, id, token string) (*agoratest.Client, agoratest.Frame) {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "", http.Header{"Authorization": {"Bearer " + token}})
	a.Send(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}}`)
	return a, a.Expect(`{"type":"agent.registered"}`)
}

// dismissed expects that an agent is told UNAUTHORIZED in words that hold a text, and its connection closed with 1008.
func dismissed(t *testing.T, a *agoratest.Client, text string) {
	t.Helper()
	f := a.Expect(`{"type":"error","code":"UNAUTHORIZED"}`)
	if !strings.Contains(f.Raw("message"), text) {
		t.Errorf("told %s, want %q", f.Raw("message"), text)
	}
	a.ExpectClosed(1008)
}

func TestAConnectionEndsWithItsCredentialsUnlessTheyAreRenewed(t *testing.T) {
	t.Parallel()
	d := newDesk(nil)
	c := start(t, agoratest.Options{Node: edge.Config{Auth: d}})
	end, later := time.Now().Add(4*time.Second), time.Now().Add(time.Hour)
	jane := edge.Principal{Name: "jane", Agents: []string{"jane", "jane-2", "jane-3"}}
	with := func(p edge.Principal, at time.Time) edge.Principal { p.Expires = at; return p }
	other := edge.Principal{Name: "joe", Agents: []string{"jane"}}
	d.issue(map[string]edge.Principal{
		"short": with(jane, end), "long": with(jane, later), "endless": jane,
		"joe": other, "tenant": {Name: "jane", Tenant: "acme", Agents: []string{"jane"}}, "narrow": {Name: "jane", Agents: []string{"bot"}},
	})
	ends, welcome := entered(t, c, 0, "jane", "short")
	if got := int64(welcome.Uint("expires")); got != end.Unix() {
		t.Errorf("told to end at %d, want %d", got, end.Unix())
	}
	renewed, _ := entered(t, c, 1, "jane-2", "short")
	anonymous := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", http.Header{"Authorization": {"Bearer short"}})
	anonymous.Send(`{"type":"list","id":"1"}`)
	anonymous.Expect(`{"type":"agents","id":"1"}`)
	for token, code := range map[string]string{"wrong": "UNAUTHORIZED", "joe": "FORBIDDEN", "tenant": "FORBIDDEN", "narrow": "FORBIDDEN"} {
		ends.Send(`{"type":"agent.refresh","id":"x","token":"` + token + `"}`)
		ends.Expect(`{"type":"error","request_id":"x","code":"` + code + `"}`)
	}
	renewed.Send(`{"type":"agent.refresh","id":"r","token":"long"}`)
	if got := int64(renewed.Expect(`{"type":"agent.refreshed","id":"r"}`).Uint("expires")); got != later.Unix() {
		t.Errorf("renewed until %d, want %d", got, later.Unix())
	}
	dismissed(t, ends, "have ended")
	if late := time.Since(end); late > 5*time.Second || late < 0 {
		t.Errorf("closed %v after its end, want 0 to 5 s", late)
	}
	_ = anonymous.Try(`{"type":"list","id":"2"}`) // it may have been closed meanwhile
	dismissed(t, anonymous, "have ended")
	renewed.Send(`{"type":"agent.refresh","id":"r","token":"endless"}`)
	if f := renewed.Expect(`{"type":"agent.refreshed","id":"r"}`); f.Has("expires") {
		t.Errorf("credentials without an end are renewed until %s", f.Raw("expires"))
	}
}

func TestAnyoneWhoseCredentialsAreTakenBackIsClosedWithinSeconds(t *testing.T) {
	t.Parallel()
	d := newDesk(map[string]edge.Principal{
		"a": {Name: "jane", ID: "1", Agents: []string{"*"}}, "b": {Name: "joe", ID: "2", Agents: []string{"*"}}, "c": {Name: "jim", ID: "3", Agents: []string{"*"}},
	})
	c := start(t, agoratest.Options{Node: edge.Config{Auth: d}})
	jane, _ := entered(t, c, 0, "jane", "a")
	joe, _ := entered(t, c, 1, "joe", "b")
	jim, _ := entered(t, c, 1, "jim", "c")
	begin := time.Now()
	d.take("1", agora.Errorf(agora.Unauthorized, "these credentials are revoked"))
	d.take("2", agora.Errorf(agora.Unavailable, "connect again"))
	dismissed(t, jane, "revoked")
	joe.ExpectClosed(1012)
	if took := time.Since(begin); took > 5*time.Second {
		t.Errorf("it took %v, want 5 s at most", took)
	}
	jim.Send(`{"type":"list","id":"1"}`)
	jim.Expect(`{"type":"agents","id":"1"}`)
	if _, answer, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), "", http.Header{"Authorization": {"Bearer a"}}); err == nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked credentials are let in again: %v", err)
	}
}
