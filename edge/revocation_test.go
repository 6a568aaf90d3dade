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
	"github.com/agora-relay/agora/internal/await"
)

// desk hands out principals by token, and takes them back.
type desk struct {
	mu      sync.Mutex // guards the fields below
	known   map[string]edge.Principal
	lasts   map[string]time.Duration // for how long a token is good from when it is presented; one that is not here, for as long as its principal says
	until   time.Time                // when the last of them ends
	gone    map[string]error         // by id
	version uint64
}

func newDesk(known map[string]edge.Principal) *desk {
	return &desk{known: known, lasts: map[string]time.Duration{}, gone: map[string]error{}}
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
	if life, ok := d.lasts[c.Token]; ok {
		p.Expires = time.Now().Add(life)
		d.until = p.Expires
	}
	return p, d.gone[p.ID]
}

// last has a token be good for so long from when it is presented.
func (d *desk) last(token string, life time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.lasts[token] = life
}

// ends returns when what was presented last ends, of a token that is good for a while.
func (d *desk) ends() time.Time {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.until
}

func (d *desk) Version() uint64 {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.version
}

func (d *desk) Revalidate(p *edge.Principal) error {
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

// enters has an agent ask to be registered, with a token.
func enters(t *testing.T, c *agoratest.Cluster, k int, id, token string) *agoratest.Client {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "", bearer(token))
	_ = a.Try(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}}`) // its credentials may have ended already
	return a
}

func bearer(token string) http.Header { return http.Header{"Authorization": {"Bearer " + token}} }

// entered has an agent register with a token.
func entered(t *testing.T, c *agoratest.Cluster, k int, id, token string) *agoratest.Client {
	t.Helper()
	a := enters(t, c, k, id, token)
	a.Expect(`{"type":"agent.registered"}`)
	return a
}

// soonOver has an agent register with the token "short", which is good for a moment, and ask one thing more in that
// time; where a busy machine takes longer, for twice as long, and so on. It returns what it was welcomed with, and the
// answer.
func soonOver(t *testing.T, c *agoratest.Cluster, d *desk, k int, id, ask, answer string) (a *agoratest.Client, welcome, f agoratest.Frame) {
	t.Helper()
	for life := 2 * time.Second; life < await.Long; life *= 2 {
		d.last("short", life)
		a = enters(t, c, k, id, "short")
		if welcome, _ = a.Next(await.Long); welcome.Type() != "agent.registered" || a.Try(ask) != nil {
			continue
		}
		if f, _ = a.Next(await.Long); f.Match(answer) == "" {
			return a, welcome, f
		}
	}
	t.Fatalf("%s gets no answer to %s before its credentials end: %s, then %s", id, ask, welcome, f)
	return nil, "", ""
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
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: d, Heartbeat: time.Hour, Timeout: 2 * time.Hour}}) // nothing but their end has them looked at
	later := time.Now().Add(time.Hour)
	jane := edge.Principal{Name: "jane", Agents: []string{"jane", "jane-2"}}
	long := jane
	long.Expires = later
	d.issue(map[string]edge.Principal{
		"short": jane, "long": long, "endless": jane,
		"joe": {Name: "joe", Agents: []string{"jane"}}, "tenant": {Name: "jane", Tenant: "acme", Agents: []string{"jane"}}, "narrow": {Name: "jane", Agents: []string{"bot"}},
	})
	d.last("short", time.Second)
	anonymous := agoratest.Connect(t, agoratest.Direct{}, c.URL(0), "", bearer("short"))
	renewed, _, f := soonOver(t, c, d, 1, "jane-2", `{"type":"agent.refresh","id":"r","token":"long"}`, `{"type":"agent.refreshed","id":"r"}`)
	if got := int64(f.Uint("expires")); got != later.Unix() {
		t.Errorf("renewed until %d, want %d", got, later.Unix())
	}
	ends, welcome, _ := soonOver(t, c, d, 0, "jane", `{"type":"agent.refresh","id":"x","token":"wrong"}`, `{"type":"error","request_id":"x","code":"UNAUTHORIZED"}`)
	end := d.ends()
	if got := int64(welcome.Uint("expires")); got != end.Unix() {
		t.Errorf("told to end at %d, want %d", got, end.Unix())
	}
	dismissed(t, ends, "have ended")
	if early := time.Until(end); early > 0 {
		t.Errorf("closed %v before its end", early)
	}
	_ = anonymous.Try(`{"type":"list","id":"2"}`) // it may have been closed meanwhile
	dismissed(t, anonymous, "have ended")
	for token, code := range map[string]string{"wrong": "UNAUTHORIZED", "joe": "FORBIDDEN", "tenant": "FORBIDDEN", "narrow": "FORBIDDEN"} {
		renewed.Send(`{"type":"agent.refresh","id":"x","token":"` + token + `"}`)
		renewed.Expect(`{"type":"error","request_id":"x","code":"` + code + `"}`)
	}
	renewed.Send(`{"type":"agent.refresh","id":"r","token":"endless"}`)
	if f := renewed.Expect(`{"type":"agent.refreshed","id":"r"}`); f.Has("expires") {
		t.Errorf("credentials without an end are renewed until %s", f.Raw("expires"))
	}
}

func TestAnyoneWhoseCredentialsAreTakenBackIsClosed(t *testing.T) {
	t.Parallel()
	d := newDesk(map[string]edge.Principal{
		"a": {Name: "jane", ID: "1", Agents: []string{"*"}}, "b": {Name: "joe", ID: "2", Agents: []string{"*"}}, "c": {Name: "jim", ID: "3", Agents: []string{"*"}},
	})
	c := start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: d, Heartbeat: time.Hour, Timeout: 2 * time.Hour}}) // nothing else has them looked at
	jane := entered(t, c, 0, "jane", "a")
	joe := entered(t, c, 1, "joe", "b")
	jim := entered(t, c, 1, "jim", "c")
	d.take("1", agora.Errorf(agora.Unauthorized, "these credentials are revoked"))
	d.take("2", agora.Errorf(agora.Unavailable, "connect again"))
	dismissed(t, jane, "revoked")
	joe.ExpectClosed(1012)
	jim.Send(`{"type":"list","id":"1"}`)
	jim.Expect(`{"type":"agents","id":"1"}`)
	if _, answer, err := agoratest.TryConnect(t, agoratest.Direct{}, c.URL(0), "", bearer("a")); err == nil || answer.StatusCode != http.StatusUnauthorized {
		t.Errorf("revoked credentials are let in again: %v", err)
	}
}
