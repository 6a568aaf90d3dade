//go:build interop

package p2p

import (
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

func TestEdgesAnswerPeersOfJS(t *testing.T) {
	c := start(t)
	js := scripts(t)
	for _, at := range []string{c.tcp[0], c.ws[1]} {
		if got := js.card(t, at); !strings.Contains(got, `"agents":0`) {
			t.Errorf("the card of the cluster is %s", got)
		}
		if got := js.handsOff(t, at, `{"method":"GET","path":"/agents/carl/x"}`); !strings.Contains(got, `"code":404`) {
			t.Errorf("nobody answers %s", got)
		}
		if got := js.runs(t, "ask.mjs", at, "identify"); !strings.Contains(got, `"/libp2p/circuit/relay/0.2.0/hop"`) {
			t.Errorf("the edge is %s", got)
		}
		js.runs(t, "ask.mjs", at, "ping")
	}
}

// bob is an agent at a WebSocket, who answers each handoff by a stream until the test is over.
func (c *cluster) bob(t *testing.T, k int) {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, "ws"+strings.TrimPrefix(c.URLs[k], "http")+"/ws", "", nil)
	a.Send(`{"type":"agent.register","agent":{"id":"bob","skills":["greet"]}}`)
	a.Expect(`{"type":"agent.registered"}`)
	answers := func() {
		f := a.Expect(`{"type":"message"}`)
		to := `"to":` + f.Raw("from") + `,"stream_id":` + f.Raw("request_id")
		a.Send(`{"type":"reply",` + to + `,"stream":true,"payload":{"request_id":` + f.Raw("request_id") + `}}`)
		for _, piece := range []string{"Hello, ", "Zoë", "\n"} {
			a.Send(`{"type":"reply_chunk",` + to + `,"chunk":` + agoratest.Quote(piece) + `}`)
		}
		a.Send(`{"type":"reply_end",` + to + `}`)
	}
	t.Cleanup(goes(func() {
		for range handoffs {
			answers()
		}
	}))
}

// handoffs is how many bob answers.
const handoffs = 4

func TestAnAgentOfAnotherDialectIsAPeerForJS(t *testing.T) {
	c := start(t)
	js := scripts(t)
	c.bob(t, 1)
	var at []string
	await.True(t, "bob is listed", func() bool {
		var list []struct{ Addresses []string }
		get(t, c.URLs[0]+"/peers?agent_name="+url.QueryEscape("bob"), &list)
		if len(list) == 1 {
			at = list[0].Addresses
		}
		return len(list) == 1 && len(at) == 6
	})
	for _, address := range at {
		if got := js.card(t, address); !strings.Contains(got, `"id":"bob"`) || !strings.Contains(got, `"greet"`) {
			t.Errorf("at %s the card is %s", address, got)
		}
		if got := js.runs(t, "ask.mjs", address, "identify"); !strings.Contains(got, `"/ai-agent/handoff/1.0.0"`) || !strings.Contains(address, strings.Split(got, `"`)[3]) {
			t.Errorf("at %s is %s", address, got)
		}
	}
	js.runs(t, "ask.mjs", at[2], "ping")
	for _, address := range at[:handoffs] {
		if got := js.handsOff(t, address, request); got != "Hello, Zoë\n" {
			t.Errorf("at %s the answer is %q", address, got)
		}
	}
}

func TestJSIsToldWhyItIsRefused(t *testing.T) {
	js := scripts(t)
	t.Run("limits", func(t *testing.T) {
		t.Parallel()
		c := start(t, "--p2p.relay.data", "1MiB", "--p2p.relay.reservations", "1")
		id := js.serves(t, c.tcp[0]+"/p2p-circuit").id
		if got := js.fails(t, "serve.mjs", c.tcp[0]+"/p2p-circuit"); !strings.Contains(got, "RESERVATION_REFUSED") && !strings.Contains(got, "RESOURCE_LIMIT_EXCEEDED") {
			t.Errorf("a second reservation: %s", got)
		}
		stranger := enter(t).ID().String()
		for k := range 3 {
			if got := js.fails(t, "ask.mjs", c.tcp[k]+"/p2p-circuit/p2p/"+stranger, "card"); !strings.Contains(got, "NO_RESERVATION") {
				t.Errorf("through edge %d to who has no place: %s", k, got)
			}
			js.fails(t, "echo.mjs", c.tcp[k]+"/p2p-circuit/p2p/"+id, "4194304", "close")
			js.echo(t, c.tcp[k]+"/p2p-circuit/p2p/"+id, 512<<10, true)
		}
	})
	t.Run("no relay", func(t *testing.T) {
		t.Parallel()
		c := start(t, "--p2p.relay=off")
		if got := js.fails(t, "serve.mjs", c.tcp[0]+"/p2p-circuit"); !strings.Contains(got, "PERMISSION_DENIED") {
			t.Errorf("a reservation where there are none: %s", got)
		}
	})
}

// A peer speaks as an agent once its own key has said so, whatever the key's type.
func TestAPeerOfJSProvesWhichAgentItIs(t *testing.T) {
	js := scripts(t)
	tokens := filepath.Join(t.TempDir(), "tokens")
	line := fmt.Sprintf("ada sha256:%x agents=ada,ada/* tenant=acme\n", sha256.Sum256([]byte("a token of ada's")))
	if err := os.WriteFile(tokens, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	c := agoratest.StartDev(t, "--auth", "file:"+tokens)
	var list struct {
		Edges []struct{ Addresses []string }
	}
	r, err := http.NewRequest(http.MethodGet, c.URLs[0]+"/p2p", nil)
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer a token of ada's")
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if err := json.NewDecoder(resp.Body).Decode(&list); err != nil || len(list.Edges) != 1 {
		t.Fatalf("%s: %+v, %v", resp.Status, list, err)
	}
	for _, key := range []string{"Ed25519", "RSA", "secp256k1"} {
		var said []struct {
			Code  int
			Name  string
			Bound *bool
			Why   string
		}
		got := js.runs(t, "bind.mjs", c.URLs[0], "a token of ada's", "ada/"+key, key, list.Edges[0].Addresses[0])
		if err := json.Unmarshal([]byte(got), &said); err != nil || len(said) != 5 {
			t.Fatalf("%s: %s, %v", key, got, err)
		}
		if said[0].Code != 403 || said[1].Bound == nil || *said[1].Bound || said[1].Why == "" || said[2].Code != 403 {
			t.Errorf("%s: without a proof: %s", key, got)
		}
		if said[3].Bound == nil || !*said[3].Bound || said[4].Code != 0 || said[4].Name == "" {
			t.Errorf("%s: with a proof: %s", key, got)
		}
	}
}
