package edge_test

import (
	"context"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/internal/agoratest"
)

// byWord takes "tenant name role…" for a principal of that tenant, that name and those roles, which may be any agent.
// A word that begins with '{' is the claim of its token.
type byWord struct{}

func (byWord) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	words := strings.Fields(c.Token)
	if len(words) < 2 {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "two words")
	}
	p := edge.Principal{Tenant: words[0], Name: words[1], Any: true, Roles: words[2:]}
	if i := slices.IndexFunc(p.Roles, func(w string) bool { return w[0] == '{' }); i >= 0 {
		scope, err := policy.ParseScope([]byte(p.Roles[i]))
		if err != nil {
			return edge.Principal{}, agora.Errorf(agora.Unauthorized, "no claim")
		}
		p.Scope, p.Roles = scope, p.Roles[:i]
	}
	return p, nil
}

// as connects to edge k as an agent of who a token names.
func as(t *testing.T, c *agoratest.Cluster, k int, token, id string, query ...string) *agoratest.Client {
	t.Helper()
	a := knock(t, c, k, token, id, query...)
	a.Expect(`{"type":"agent.registered"}`)
	return a
}

func knock(t *testing.T, c *agoratest.Cluster, k int, token, id string, query ...string) *agoratest.Client {
	t.Helper()
	q := url.Values{"token": {token}, "agent_id": {id}}
	for i := 0; i+1 < len(query); i += 2 {
		q.Set(query[i], query[i+1])
	}
	return agoratest.Connect(t, agoratest.Direct{}, c.URL(k), q.Encode(), nil)
}

func rulesOf(t *testing.T, text string) *policy.Rules {
	t.Helper()
	r, err := policy.Parse([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const townRules = `
rules:
  - name: users
    who: {roles: [user]}
    agents: ["${name}", "${name}/*"]
    send: ["svc", "${name}/*"]
    join: [lobby, hall]
    publish: [lobby]
    create: [lobby]
  - name: services
    who: {roles: [service]}
    agents: ["svc*"]
    join: ["lobby", "mcp.tools"]
    publish: ["mcp.tools"]
    create: [hall]
    directory: true
  - name: silence
    who: {names: [mute]}
    deny: true
    send: ["*"]
    reply: true
`

// town is a cluster under rules, with a user and a service at different edges.
func town(t *testing.T) (c *agoratest.Cluster, p *policy.Policy, joe, svc *agoratest.Client) {
	t.Helper()
	p = new(policy.Policy)
	p.Set(rulesOf(t, townRules))
	c = start(t, agoratest.Options{Edges: 2, Node: edge.Config{Auth: byWord{}, Policy: p}})
	return c, p, as(t, c, 0, "a joe user", "joe"), as(t, c, 1, "a svc service", "svc")
}

// forbidden expects FORBIDDEN, with a word about why.
func forbidden(t *testing.T, c *agoratest.Client, why, fields string) {
	t.Helper()
	f := c.Expect(`{"type":"error","code":"FORBIDDEN"` + fields + `}`)
	if !strings.Contains(f.Text("message"), why) {
		t.Errorf("%s: want a word about %q", f, why)
	}
}

const noRule = "no rule allows it"

func TestAnAgentIsWhomARuleAllows(t *testing.T) {
	t.Parallel()
	c, _, _, _ := town(t)
	for token, id := range map[string]string{"a joe user": "jane", "a joe service": "joe", "a joe": "joe/1"} {
		k := knock(t, c, 0, token, id)
		forbidden(t, k, noRule, "")
		k.ExpectClosed(1008)
	}
	as(t, c, 1, "a joe user", "joe/1")
}

func TestAnAgentAddressesWhomARuleAllowsAndAnswersWhoeverAsks(t *testing.T) {
	t.Parallel()
	c, _, joe, svc := town(t)
	svc.Send(`{"type":"reply","id":"r0","to":"joe","payload":0}`, `{"type":"send","id":"s0","to":"joe","payload":0}`, `{"type":"send","id":"s1","to":"nobody","payload":0}`)
	forbidden(t, svc, noRule, `,"request_id":"r0","to":"joe"`)
	forbidden(t, svc, noRule, `,"request_id":"s0","to":"joe"`)
	forbidden(t, svc, noRule, `,"request_id":"s1","to":"nobody"`) // not even that there is nobody
	joe.Send(`{"type":"send","id":"q","to":"svc","payload":{"request_id":"x"}}`)
	joe.Expect(`{"type":"receipt","request_id":"q"}`)
	svc.Expect(`{"type":"message","from":"joe"}`)
	svc.Send(`{"type":"reply","to":"joe","payload":{"request_id":"x"}}`,
		`{"type":"reply","to":"joe","stream_id":"s","stream":true}`, `{"type":"reply_chunk","to":"joe","stream_id":"s","chunk":"c"}`, `{"type":"reply_end","to":"joe","stream_id":"s"}`)
	joe.Expect(`{"type":"reply","payload":{"request_id":"x"}}`, `{"type":"reply","stream_id":"s"}`, `{"type":"reply_chunk","chunk":"c"}`, `{"type":"reply_end"}`)
	svc.Send(`{"type":"send","id":"s2","to":"joe","payload":0}`)
	forbidden(t, svc, noRule, `,"request_id":"s2"`)
	svc.Send(`{"type":"send","id":"s3","to":"joe","stream_id":"t","stream":true}`, `{"type":"send_chunk","to":"joe","stream_id":"t","chunk":"c"}`, `{"type":"send_end","to":"joe","stream_id":"t"}`)
	forbidden(t, svc, noRule, `,"request_id":"s3","stream_id":"t"`) // answered once
	svc.Barrier()
	joe.ExpectNone(during(100 * time.Millisecond))
	svc.Drop() // the session continues elsewhere, which has not seen joe's question
	svc = as(t, c, 0, "a svc service", "svc")
	svc.Send(`{"type":"reply","id":"r1","to":"joe","payload":1}`)
	joe.Expect(`{"type":"reply","payload":1}`)
}

func TestADenyingRuleIsNamed(t *testing.T) {
	t.Parallel()
	c, p, _, svc := town(t)
	p.Set(rulesOf(t, strings.ReplaceAll(townRules, "names: [mute]", "names: [svc]")))
	joe2 := as(t, c, 0, "a jim user", "jim")
	joe2.Send(`{"type":"send","to":"svc","payload":0}`)
	svc.Expect(`{"type":"message","from":"jim"}`)
	svc.Send(`{"type":"reply","id":"r","to":"jim","payload":0}`, `{"type":"send","id":"s","to":"jim","payload":0}`)
	forbidden(t, svc, `rule "silence"`, `,"request_id":"r"`)
	forbidden(t, svc, `rule "silence"`, `,"request_id":"s"`)
}

func TestSpacesAreEnteredByRules(t *testing.T) {
	t.Parallel()
	_, _, joe, svc := town(t)
	ask := func(c *agoratest.Client, frame, answer string) {
		t.Helper()
		c.Send(frame)
		c.Expect(answer)
	}
	no := `{"type":"error","code":"FORBIDDEN","request_id":"i"}`
	ask(joe, `{"type":"space.join","id":"i","space":"attic"}`, no)
	ask(joe, `{"type":"space.leave","id":"i","space":"attic"}`, no)
	ask(joe, `{"type":"space.create","id":"i","space":"attic"}`, no)
	ask(joe, `{"type":"space.publish","id":"i","space":"attic","data":{}}`, no)
	ask(joe, `{"type":"space.event.cancel","id":"i","space":"attic","event_id":"e"}`, no)
	ask(joe, `{"type":"space.join","id":"i","space":"agent.status"}`, no)
	ask(joe, `{"type":"space.join","id":"i","space":"hall"}`, `{"type":"error","code":"SPACE_NOT_FOUND","request_id":"i"}`) // which it may not create
	ask(svc, `{"type":"space.create","id":"i","space":"hall"}`, `{"type":"space.created"}`)
	ask(joe, `{"type":"space.join","id":"i","space":"hall"}`, `{"type":"space.joined","members":["joe"]}`)
	ask(joe, `{"type":"space.publish","id":"i","space":"hall","data":{}}`, no)
	ask(svc, `{"type":"space.join","id":"i","space":"mcp.tools"}`, `{"type":"space.joined"}`)
	ask(svc, `{"type":"space.publish","id":"i","space":"mcp.tools","data":{"tool":1}}`, `{"type":"space.event","space":"mcp.tools"}`)
	ask(joe, `{"type":"space.join","id":"i","space":"lobby"}`, `{"type":"space.joined","members":["joe"]}`)
	ask(svc, `{"type":"space.join","id":"i","space":"lobby"}`, `{"type":"space.joined","members":["joe","svc"]}`)
	ask(joe, `{"type":"space.publish","space":"lobby","data":{"text":"hi"}}`, `{"type":"space.event","space":"lobby"}`) // and no roster before it
	svc.Expect(`{"type":"space.event","space":"lobby"}`)
	ask(svc, `{"type":"space.publish","id":"i","space":"lobby","data":{}}`, no)
}

func TestTheDirectoryIsForWhoMaySeeIt(t *testing.T) {
	t.Parallel()
	_, _, joe, svc := town(t)
	joe.Send(`{"type":"list","id":"i"}`, `{"type":"space.list","id":"j"}`)
	forbidden(t, joe, noRule, `,"request_id":"i"`)
	forbidden(t, joe, noRule, `,"request_id":"j"`)
	svc.Send(`{"type":"list"}`, `{"type":"space.list","id":"j"}`)
	svc.Expect(`{"type":"agents"}`, `{"type":"space.list"}`)
}

func TestARightThatIsLostIsLostWithTheNextMessage(t *testing.T) {
	t.Parallel()
	c, p, joe, svc := town(t)
	joe.Send(`{"type":"send","to":"svc","stream_id":"s","stream":true}`, `{"type":"send_chunk","to":"svc","stream_id":"s","chunk":"1"}`,
		`{"type":"space.join","id":"i","space":"lobby"}`, `{"type":"space.publish","id":"p","space":"lobby","data":{},"stream":true}`)
	svc.Expect(`{"type":"message","stream_id":"s"}`, `{"type":"message_chunk"}`)
	joe.Expect(`{"type":"space.joined"}`)
	joe.ExpectAll(`{"type":"space.published"}`, `{"type":"space.event.delta"}`)
	p.Set(rulesOf(t, strings.NewReplacer(`send: ["svc", `, `send: [`, "publish: [lobby]", "publish: [hall]").Replace(townRules)))
	joe.Send(`{"type":"send_chunk","to":"svc","stream_id":"s","chunk":"2"}`, `{"type":"send_chunk","to":"svc","stream_id":"s","chunk":"3"}`)
	joe.ExpectAll(`{"type":"error","code":"FORBIDDEN","to":"svc","stream_id":"s"}`, `{"type":"error","code":"FORBIDDEN","space":"lobby"}`, `{"type":"space.event.cancel","space":"lobby"}`)
	svc.Expect(`{"type":"error","code":"STREAM_ABORTED","from":"joe","stream_id":"s"}`)
	joe.Send(`{"type":"send","id":"m","to":"svc","payload":0}`)
	forbidden(t, joe, noRule, `,"request_id":"m"`)

	p.Set(rulesOf(t, strings.ReplaceAll(townRules, "join: [lobby, hall]", "join: [hall]")))
	c.Node(0).Reconsider()
	forbidden(t, joe, noRule, `,"space":"lobby"`)
	joe.Send(`{"type":"send","to":"svc","payload":"again"}`)
	svc.Expect(`{"type":"message","payload":"again"}`)
	joe.Send(`{"type":"space.publish","id":"i","space":"lobby","data":{}}`)
	joe.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"i"}`)

	p.Set(rulesOf(t, strings.ReplaceAll(townRules, "roles: [user]", "roles: [guest]")))
	c.Node(0).Reconsider()
	forbidden(t, joe, noRule, "")
	joe.ExpectClosed(1008)
	p.Set(nil)
	as(t, c, 0, "a joe user", "anybody")
}

func TestRenewedCredentialsBringTheirOwnClaim(t *testing.T) {
	t.Parallel()
	_, _, joe, svc := town(t)
	joe.Send(`{"type":"agent.refresh","id":"1","token":"a joe user {\"agents\":[\"joe/1\"]}"}`)
	forbidden(t, joe, "the token does not allow it", `,"request_id":"1"`)
	joe.Send(`{"type":"send","to":"svc","payload":1}`) // as before
	svc.Expect(`{"type":"message","payload":1}`)
	joe.Send(`{"type":"agent.refresh","id":"2","token":"a joe user {\"send\":[\"joe/*\"]}"}`)
	joe.Expect(`{"type":"agent.refreshed","id":"2"}`)
	joe.Send(`{"type":"send","id":"3","to":"svc","payload":2}`)
	forbidden(t, joe, "the token does not allow it", `,"request_id":"3"`)
	joe.Send(`{"type":"agent.refresh","id":"4","token":"b joe user"}`)
	joe.Expect(`{"type":"error","code":"FORBIDDEN","request_id":"4"}`)
}

func TestATokensOwnClaimTakesAway(t *testing.T) {
	t.Parallel()
	c, _, _, _ := town(t)
	joe := as(t, c, 0, `a joe user {"send":["joe/*"],"agents":["joe/1"]}`, "joe/1")
	joe.Send(`{"type":"send","id":"m","to":"svc","payload":0}`)
	forbidden(t, joe, "the token does not allow it", `,"request_id":"m"`)
	k := knock(t, c, 0, `a joe user {"send":["joe/*"],"agents":["joe/1"]}`, "joe/2")
	forbidden(t, k, "the token does not allow it", "")
}
