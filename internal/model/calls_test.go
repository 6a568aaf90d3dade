package model

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/call"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const (
	callers  = 8
	perCall  = 12        // calls of each
	answered = "0123456" // the text of an answer, a chunk each
)

// asked is what the model knows of one call: who wrote what about it.
type asked struct {
	mu      sync.Mutex // guards the fields below
	handled map[int]int
	whole   int // answers that came whole
}

// Callers ask at random edges, some under a name and then again elsewhere until they have the answer, while edges die, theirs and
// that of the agent that answers. Every call is handled once at most, and every answer is its own, whole, in order and once, or ends in an error.
func TestCallsAreDoneOnceAndAnsweredWholeThoughEdgesDie(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	c := agoratest.Start(t, agoratest.Options{
		Edges: 2, Redis: true, Grace: time.Minute, Node: edge.Config{Lease: 4 * time.Second, Heartbeat: time.Minute},
	})
	ctx, cancel := context.WithCancel(await.Context(t))
	defer cancel()
	doomed := []int{c.AddDoomed(4 * time.Second), c.AddDoomed(4 * time.Second)}
	bob, err := client.Dial(ctx, client.Config{URLs: []string{c.URL(doomed[1]), c.URL(0)}, Agent: "bob"})
	if err != nil {
		t.Fatal(err)
	}
	defer bob.Close()
	model := asked{handled: map[int]int{}}
	var answering, asking sync.WaitGroup
	answering.Go(func() { bob.Handle(ctx, model.answer(bob)) })
	nodes := func() []*edge.Node {
		var all []*edge.Node
		for _, k := range c.Edges() {
			all = append(all, c.Node(k))
		}
		return all
	}
	for who := range callers {
		asking.Go(func() {
			for i := range perCall {
				k := who*perCall + i
				whole, err := ask(ctx, nodes, k, k%2 == 0)
				if err != nil {
					t.Errorf("call %d: %v", k, err)
				}
				model.count(whole)
			}
		})
	}
	for _, k := range doomed {
		handled := func() bool {
			model.mu.Lock()
			defer model.mu.Unlock()
			return len(model.handled) > callers*perCall/4
		}
		await.True(t, "some calls are handled", handled)
		c.CutEdge(k)
	}
	asking.Wait()
	cancel()
	answering.Wait()
	if model.whole < callers*perCall/2 { // the others were asked at an edge that died, or of one
		t.Errorf("%d of %d calls had an answer", model.whole, callers*perCall)
	}
	for k, n := range model.handled {
		if n > 1 {
			t.Errorf("call %d was handled %d times", k, n)
		}
	}
}

func (m *asked) count(whole bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if whole {
		m.whole++
	}
}

// answer answers what bob is asked, in chunks.
func (m *asked) answer(bob *client.Client) func(context.Context, *client.Message) {
	return func(ctx context.Context, q *client.Message) {
		var body struct{ K int }
		if json.Unmarshal(q.Payload, &body) != nil {
			return
		}
		m.mu.Lock()
		m.handled[body.K]++
		m.mu.Unlock()
		s, err := bob.ReplyStream(ctx, q.From, q.RequestID(), map[string]int{"k": body.K})
		if err != nil {
			return // nobody waits any more
		}
		for _, piece := range answered {
			if _, err := s.WriteString(string(piece)); err != nil {
				return
			}
		}
		_ = s.Close() // the answer's caller sees whether it is whole
	}
}

// ask makes a call, one with a name again and again until it has an answer that stays, and returns whether it is whole.
func ask(ctx context.Context, nodes func() []*edge.Node, k int, named bool) (whole bool, err error) {
	for {
		all := nodes()
		got, err := askOnce(ctx, all[rand.IntN(len(all))], k, named)
		if !strings.HasPrefix(answered, got) {
			return false, fmt.Errorf("the answer is %q, %v", got, err)
		}
		code := agora.Code("") // of no error that an agent may see
		if e, ok := errors.AsType[*agora.Error](err); ok {
			code = e.Code
		}
		switch {
		case ctx.Err() != nil:
			return false, ctx.Err()
		case err == nil && got == answered:
			return true, nil
		case err == nil:
			return false, fmt.Errorf("the answer ended after %q", got)
		case code == agora.StreamAborted || code == agora.Timeout || code == agora.Unavailable && !named:
			return false, nil // which is an end
		case code != agora.Unavailable:
			return false, err
		}
		select {
		case <-time.After(20 * time.Millisecond):
		case <-ctx.Done():
		}
	}
}

// askOnce makes a call at an edge, and returns the text of its answer as far as it came.
func askOnce(ctx context.Context, n *edge.Node, k int, named bool) (text string, err error) {
	who, err := n.Authenticate(ctx, edge.Credentials{})
	if err != nil {
		return "", err
	}
	id := "r-" + strconv.Itoa(k)
	q := call.Request{Within: time.Minute, Message: agora.Message{
		ID: id, To: agora.Address{Agent: "bob"}, Body: fmt.Appendf(nil, `{"k":%d,"request_id":%q}`, k, id),
	}}
	if named {
		q.Name, q.Within = id, 0
	}
	a, err := who.Call(ctx, "anna", q)
	if err != nil {
		return "", err
	}
	defer a.Close()
	for {
		m, err := a.Next(ctx)
		switch {
		case errors.Is(err, io.EOF):
			return text, nil
		case err != nil:
			return text, err
		case m.Part == agora.Start && !strings.Contains(string(m.Body), fmt.Sprintf(`"k":%d`, k)):
			return "", fmt.Errorf("call %d got the answer %s", k, m.Body)
		case m.Part == agora.Chunk:
			if m.Media != agora.MediaText {
				return text, fmt.Errorf("a chunk's media type is %q", m.Media)
			}
			text += string(m.Body)
		}
	}
}
