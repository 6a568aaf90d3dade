package serve

import (
	"fmt"
	"net/http"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/origintest"
	"github.com/agora-relay/agora/wire/iat"
)

// TestEveryEnvelopeCounts says envelopes of each type with each action, by the word of the edge's own manifest, POSTed
// and by a socket, until the agent may say nothing more.
func TestEveryEnvelopeCounts(t *testing.T) {
	const bySocket = "by a socket"
	ways := map[string]func(e *rated, token string, envelopes []string){
		"POSTed": (*rated).posts,
		bySocket: (*rated).saysBySocket,
	}
	atEachLevel(t, func(e *rated) {
		types, actions := e.manifest()
		pairs := map[string]int{}
		for about, say := range ways {
			for _, typ := range types {
				for _, action := range actions {
					if !takes(e.t, envelope(typ, action, 0)) || about == bySocket && typ == iat.Chunk.String() { // one that continues with nothing is an error there, of which some end the socket
						continue
					}
					pairs[typ]++
					token, limited := e.speaker()
					envelopes := make([]string, tooMany)
					for n := range envelopes {
						envelopes[n] = envelope(typ, action, n)
					}
					say(e, token, envelopes)
					await.True(e.t, fmt.Sprintf("%s with %s, said four times %s, counts", typ, action, about), limited)
				}
			}
		}
		for _, typ := range types {
			if pairs[typ] < 5 {
				e.t.Errorf("only %d times was a %s said", pairs[typ], typ)
			}
		}
	})
}

// every is what the actions ask for, each something else.
const every = `"agent_id":"speaker","tools":[],"query":"q","tool_name":"t","arguments":{},"thought_text":"t","level":"info","message":"m","result_summary":"r","usage_stats":{}`

// takes reports whether an envelope is one: what is none counts as an error.
func takes(t *testing.T, said string) bool {
	t.Helper()
	var e iat.Envelope
	if err := iat.Decode([]byte(said), &e, iat.Limits{}); err != nil {
		t.Fatalf("%s: %v", said, err)
	}
	return iat.CheckAction(&e) == nil
}

// envelope is one that is to nobody, or to the cluster where that alone takes it.
func envelope(typ, action string, n int) string {
	to := "nobody"
	if action == iat.ActionRegister || action == iat.ActionApproval && typ == iat.Request.String() {
		to = string(agora.Cluster)
	}
	parent := ""
	if typ != iat.Request.String() {
		parent = `,"parent_id":"p"`
	}
	return fmt.Sprintf(`{"header":{"msg_id":"m-%d","type":%q,"from":"speaker","to":%q%s},"metadata":{"deadline_ms":1},"payload":{"action":%q,"n":%d,`+every+`}}`, n, typ, to, parent, action, n)
}

func (e *rated) posts(token string, envelopes []string) {
	for _, said := range envelopes {
		e.ask(token, origintest.Request{Method: http.MethodPost, Target: "/a2a", Body: said, Headers: []string{"Content-Type", "application/json"}})
	}
}

func (e *rated) saysBySocket(token string, envelopes []string) {
	c, _, err := websocket.DefaultDialer.Dial("ws://"+e.ports.public.addr()+"/a2a/ws?agent=speaker", http.Header{"Authorization": {"Bearer " + token}}) // which counts
	if err != nil {
		e.t.Fatal(err)
	}
	e.t.Cleanup(func() { c.Close() })
	for _, said := range envelopes {
		e.say(c, said)
	}
}

// manifest returns which types and actions of envelopes there are, as the edge says.
func (e *rated) manifest() (types, actions []string) {
	e.t.Helper()
	var doc struct{ Types, Actions []string }
	e.read("/a2a/manifest", &doc)
	if len(doc.Types) < 4 || len(doc.Actions) < 9 {
		e.t.Fatalf("the manifest has types %q and actions %q", doc.Types, doc.Actions)
	}
	return doc.Types, doc.Actions
}
