package ws_test

import (
	"fmt"
	"net/url"
	"os"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/operator"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const (
	protocolPage    = "../../PROTOCOL.md"
	transcriptBegin = "<!-- begin: written by `AGORA_UPDATE_DOCS=1 go test ./edge/ws -run TestTheTranscriptOfTheProtocolIsTrue` -->\n```text\n"
	transcriptEnd   = "```\n<!-- end -->\n"
)

func TestTheTranscriptOfTheProtocolIsTrue(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile(protocolPage)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, begins := strings.Cut(string(page), transcriptBegin)
	told, after, ends := strings.Cut(rest, transcriptEnd)
	if !begins || !ends {
		t.Fatalf("%s has no transcript between %q and %q", protocolPage, transcriptBegin, transcriptEnd)
	}
	said := play(t)
	switch {
	case nameless(told) == nameless(said):
	case os.Getenv("AGORA_UPDATE_DOCS") == "":
		t.Fatalf("%s has a transcript that is not what happens; write it anew with AGORA_UPDATE_DOCS=1. It should be\n%s", protocolPage, said)
	default:
		if err := os.WriteFile(protocolPage, []byte(before+transcriptBegin+said+transcriptEnd+after), 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

// chance are the values that each run has others of.
var chance = regexp.MustCompile(`"(?:connection_id|resume_token|session|seq|last_seq)":("[^"]*"|\d+)`)

// nameless returns a transcript with the values of chance numbered in their order: the same one twice is the same number.
func nameless(transcript string) string {
	seen := map[string]int{}
	return chance.ReplaceAllStringFunc(transcript, func(field string) string {
		key, value, _ := strings.Cut(field, ":")
		if _, ok := seen[value]; !ok {
			seen[value] = len(seen)
		}
		return fmt.Sprint(key, ":", seen[value])
	})
}

// actor is an agent of the transcript.
type actor struct {
	*agoratest.Client
	name string
	b    *strings.Builder
}

// says sends a frame.
func (a *actor) says(frame string) {
	fmt.Fprintf(a.b, "%-5s → %s\n", a.name, frame)
	a.Send(frame)
}

// hears takes the next frame, which is of that type.
func (a *actor) hears(typ string) agoratest.Frame {
	f := a.Expect(`{"type":"` + typ + `"}`)
	fmt.Fprintf(a.b, "%-5s ← %s\n", a.name, f)
	return f
}

// play plays the transcript in a cluster of two edges with the settings of production.
func play(t *testing.T) string {
	t.Helper()
	c := agoratest.Start(t, agoratest.Options{Edges: 2, Grace: time.Minute, Node: edge.Config{Heartbeat: 30 * time.Second}})
	b := new(strings.Builder)
	note := func(text string) { fmt.Fprintf(b, "# %s\n", text) }
	connect := func(name string, k int, query string) *actor {
		path := "/ws"
		if query != "" {
			path += "?" + query
		}
		fmt.Fprintf(b, "%-5s → GET %s HTTP/1.1, upgraded to a WebSocket (101) by edge %d\n", name, path, k+1)
		return &actor{agoratest.Connect(t, agoratest.Direct{}, c.URL(k), query, nil), name, b}
	}

	note("Alice is bound by her URL, Bob by a frame. They are at different edges.")
	alice := connect("alice", 0, url.Values{"agent_id": {"alice"}}.Encode())
	alice.hears("agent.registered")
	bob := connect("bob", 1, "")
	bob.says(`{"type":"agent.register","id":"r-1","agent":{"id":"bob"}}`)
	token := bob.hears("agent.registered").Raw("resume_token")
	note("A message: numbered, so that it is receipted and may be sent again. Bob acknowledges it, which Alice wants to know.")
	alice.says(`{"type":"send","to":"bob","payload":{"text":"Hello"},"n":1,"receipts":["acked"]}`)
	alice.hears("receipt")
	bob.says(fmt.Sprintf(`{"type":"ack","seq":%d}`, bob.hears("message").Seq()))
	alice.hears("receipt")
	note("A stream: each part reaches Bob as soon as it is written.")
	alice.says(`{"type":"send","to":"bob","stream_id":"s-1","stream":true,"payload":{"topic":"weather"},"n":2}`)
	alice.hears("receipt")
	bob.hears("message")
	alice.says(`{"type":"send_chunk","to":"bob","stream_id":"s-1","chunk":"Sunny","n":3}`)
	alice.hears("receipt")
	last := bob.hears("message_chunk").Seq()
	note("Bob's connection breaks in the midst of it. His session waits; what is sent to him is stored.")
	fmt.Fprintln(b, "bob   ✂ the socket is gone, without a close frame")
	bob.Drop()
	waits(t, c, "bob")
	alice.says(`{"type":"send_chunk","to":"bob","stream_id":"s-1","chunk":", no wind","n":4}`)
	alice.hears("receipt")
	alice.says(`{"type":"send_end","to":"bob","stream_id":"s-1","n":5}`)
	alice.hears("receipt")
	note("He returns, to the other edge, with his token and the last position that he has dealt with.")
	bob = connect("bob", 0, "")
	bob.says(fmt.Sprintf(`{"type":"agent.register","id":"r-2","agent":{"id":"bob"},"resume_token":%s,"last_seq":%d}`, token, last))
	bob.hears("agent.registered")
	note("His session goes on. Exactly what came after that position follows.")
	bob.hears("message_chunk")
	bob.says(fmt.Sprintf(`{"type":"ack","seq":%d}`, bob.hears("message_end").Seq()))
	note("Alice says goodbye: her session ends at once, without a grace.")
	fmt.Fprintln(b, "alice → close frame 1000")
	alice.Close(1000)
	return b.String()
}

// waits waits until a session is in its grace.
func waits(t *testing.T, c *agoratest.Cluster, id agora.AgentID) {
	t.Helper()
	await.True(t, "the session waits for its agent", func() bool {
		v, err := operator.New(c.Node(0)).InspectAgent(t.Context(), agora.DefaultTenant, id)
		return err == nil && v.State == "grace"
	})
}
