package edge_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// start starts a cluster of three edges on a real redis-server, with a grace that no test waits for.
func start(t *testing.T, o agoratest.Options) *agoratest.Cluster {
	t.Helper()
	o.Redis = true
	if o.Grace == 0 {
		o.Grace = time.Minute
	}
	return agoratest.Start(t, o)
}

func leased(d time.Duration) edge.Config { return edge.Config{Lease: d} }

// registered has an agent register with an edge; fields go into its frame.
func registered(t *testing.T, c *agoratest.Cluster, k int, id string, fields ...string) (*agoratest.Client, agoratest.Frame) {
	t.Helper()
	a := asked(t, c, k, id, fields...)
	return a, a.Expect(`{"type":"agent.registered"}`)
}

// asked has an agent ask to be registered, and does not wait for the answer.
func asked(t *testing.T, c *agoratest.Cluster, k int, id string, fields ...string) *agoratest.Client {
	t.Helper()
	a := agoratest.Connect(t, agoratest.Direct{}, c.URL(k), "", nil)
	a.Send(strings.Join(append([]string{`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `}`}, fields...), ",") + "}")
	return a
}

// token is the field of a welcome by which its session continues.
func token(welcome agoratest.Frame) string {
	return `"resume_token":` + welcome.Raw("resume_token")
}

func after(seq uint64) string { return fmt.Sprintf(`"last_seq":%d`, seq) }

// stored sends a numbered message and waits until it is stored.
func stored(from *agoratest.Client, to string, n int) {
	from.Send(numbered(to, n))
	from.Expect(fmt.Sprintf(`{"type":"receipt","n":%d,"status":"stored"}`, n))
}

func numbered(to string, n int) string {
	return fmt.Sprintf(`{"type":"send","to":%s,"n":%d,"payload":%d}`, agoratest.Quote(to), n, n)
}

// got expects messages by their payloads, and returns the last.
func got(c *agoratest.Client, payloads ...int) (f agoratest.Frame) {
	for _, p := range payloads {
		f = c.Expect(fmt.Sprintf(`{"type":"message","payload":%d}`, p))
	}
	return f
}

// noticed waits until an edge that was cut off from the log knows it, as the log does by then: a question to it would
// wait for its time.
func noticed(t *testing.T, c *agoratest.Cluster, k int) {
	t.Helper()
	await.True(t, "the edge has lost the log", func() bool { return c.Node(k).Ready() != nil })
	registered(t, c, 1, "passer-by")
}

// during is a condition for ExpectNone: over when d has passed.
func during(d time.Duration) func() bool {
	end := time.Now().Add(d)
	return func() bool { return time.Now().After(end) }
}
