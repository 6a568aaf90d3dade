package reliability

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const (
	askers   = 6
	answered = "0123456" // the text of an answer, a chunk each
)

// asking is calls under way over HTTP, of which some have a name, and the account of them.
type asking struct {
	t       testing.TB
	edges   []string // their addresses
	first   int      // number of the first call
	home    int      // the edge at which the agents that answer are, until they have to move
	moved   atomic.Bool
	http    http.Client
	ctx     context.Context
	stop    context.CancelFunc // of the agents that answer
	enough  chan struct{}      // closed when nothing more is to be asked
	askers  sync.WaitGroup
	answers sync.WaitGroup

	mu      sync.Mutex  // guards the fields below
	next    int         // number of the next call
	handled map[int]int // by call
	named   []int       // those with a name that were answered
	whole   int         // answers that came whole
	ended   map[agora.Code]int
	again   int // calls with a name that were made again
}

// startAsking has calls be made at all edges, of agents at edge home; the first has a number.
func startAsking(t testing.TB, c *agoratest.Processes, home, first int) *asking {
	t.Helper()
	a := &asking{t: t, home: home, first: first, next: first, enough: make(chan struct{}), handled: map[int]int{}, ended: map[agora.Code]int{}}
	for _, u := range c.URLs() {
		a.edges = append(a.edges, strings.TrimSuffix(strings.TrimPrefix(u, "ws://"), "/ws"))
	}
	a.http.Transport = &http.Transport{DisableKeepAlives: true}
	a.ctx, a.stop = context.WithCancel(context.Background())
	t.Cleanup(a.end)
	for k := range 2 {
		id := fmt.Sprint("bob-", k)
		bob, err := client.Dial(a.ctx, client.Config{URLs: c.URLs(), Agent: id, Dial: a.dial, Backoff: client.Backoff{Max: time.Second}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = bob.Close() }) // its edge may be gone
		a.answers.Go(func() { _ = bob.Handle(a.ctx, a.answer(bob)) })
	}
	for range askers {
		a.askers.Go(a.ask)
	}
	return a
}

// dial has agents connect to their home until they have to move.
func (a *asking) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	if !a.moved.Load() {
		addr = a.edges[a.home]
	}
	var d net.Dialer
	return d.DialContext(ctx, network, addr)
}

// answer answers what an agent is asked: in one piece or in chunks.
func (a *asking) answer(bob *client.Client) func(context.Context, *client.Message) {
	return func(ctx context.Context, q *client.Message) {
		var body struct{ K int }
		if json.Unmarshal(q.Payload, &body) != nil {
			return
		}
		a.mu.Lock()
		a.handled[body.K]++
		a.mu.Unlock()
		if body.K%3 == 0 {
			_ = q.Reply(ctx, map[string]any{"k": body.K, "text": answered}) // the caller sees whether it came
			return
		}
		s, err := q.ReplyStream(ctx, map[string]int{"k": body.K})
		for _, piece := range answered {
			if err == nil {
				_, err = s.WriteString(string(piece))
			}
		}
		if err == nil {
			_ = s.Close()
		}
	}
}

// ask makes one call after the other, those with a name again until they have ended.
func (a *asking) ask() {
	for a.ctx.Err() == nil {
		select {
		case <-a.enough:
			return
		default:
		}
		a.mu.Lock()
		k := a.next
		a.next++
		a.mu.Unlock()
		named := k%2 == 0
		for a.ctx.Err() == nil {
			code, err := a.once(k, named)
			if err != nil {
				a.t.Errorf("call %d: %v", k, err)
			}
			if a.settle(k, named, code) {
				break
			}
			<-time.After(20 * time.Millisecond)
		}
	}
}

// settle counts what became of a try; false where the call is to be made again.
func (a *asking) settle(k int, named bool, code agora.Code) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	switch {
	case code == "" && named:
		a.named = append(a.named, k)
		fallthrough
	case code == "":
		a.whole++
	case named && code == agora.Unavailable:
		a.again++
		return false
	default:
		a.ended[code]++
	}
	return true
}

// once makes a call at an edge. It returns the code that it ended with, empty where the answer is whole, UNAVAILABLE
// also where the edge was lost; an error for what must not be.
func (a *asking) once(k int, named bool) (agora.Code, error) {
	events := k%4 < 2
	r, err := http.NewRequestWithContext(a.ctx, http.MethodPost, fmt.Sprintf("http://%s/agents/bob-%d/ask?as=anna&deadline_ms=60000", a.edges[rand.IntN(len(a.edges))], k%2),
		strings.NewReader(fmt.Sprintf(`{"k":%d,"request_id":"r-%d"}`, k, k)))
	if err != nil {
		return "", err
	}
	if named {
		r.Header.Set("Idempotency-Key", fmt.Sprint("call-", k))
	}
	if events {
		r.Header.Set("Accept", "text/event-stream")
	}
	resp, err := a.http.Do(r)
	if err != nil {
		return agora.Unavailable, nil
	}
	defer resp.Body.Close()
	body, cut := io.ReadAll(resp.Body)
	if resp.StatusCode != http.StatusOK {
		return refusal(body, cut)
	}
	if events {
		return judgeEvents(k, string(body), cut)
	}
	if cut != nil {
		return agora.Unavailable, nil
	}
	want := fmt.Sprintf(`{"text":%q}`, answered)
	if k%3 == 0 {
		want = fmt.Sprintf(`{"k":%d,"text":%q,"request_id":"r-%d"}`, k, answered, k)
	}
	if why := agoratest.Frame(body).Match(want); why != "" {
		return "", fmt.Errorf("the answer is %s, want %s", body, want)
	}
	return "", nil
}

// refusal returns the code of a body that is an error.
func refusal(body []byte, cut error) (agora.Code, error) {
	var f struct{ Error struct{ Code agora.Code } }
	if cut != nil {
		return agora.Unavailable, nil
	}
	if err := json.Unmarshal(body, &f); err != nil || f.Error.Code == "" {
		return "", fmt.Errorf("refused with %q", body)
	}
	return f.Error.Code, nil
}

// judgeEvents holds events against the answer that they tell: what came of it is its beginning.
func judgeEvents(k int, text string, cut error) (agora.Code, error) {
	got, whole := "", false
	for event := range strings.SplitSeq(text, "\n\n") {
		name, data, ok := strings.Cut(strings.TrimPrefix(strings.TrimLeft(event, ":\n"), "event: "), "\ndata: ")
		switch {
		case !ok: // what was cut off, or nothing
		case whole:
			return "", fmt.Errorf("behind the end comes %q", event)
		case name == "error":
			return refusal([]byte(data), nil)
		case name == "start" || name == "reply":
			if agoratest.Frame(data).Match(fmt.Sprintf(`{"k":%d}`, k)) != "" {
				return "", fmt.Errorf("the answer is of another call: %q", data)
			}
			whole = name == "reply"
		case name == "chunk":
			got += strings.Trim(data, `"`)
		case name == "end":
			whole = true
			if got != answered {
				return "", fmt.Errorf("the answer ended after %q", got)
			}
		}
		if !strings.HasPrefix(answered, got) {
			return "", fmt.Errorf("the answer is %q", got)
		}
	}
	switch {
	case whole:
		return "", nil
	case cut == nil:
		return "", errors.New("the events end without an end")
	}
	return agora.Unavailable, nil
}

// progress waits until so many more answers came whole.
func (a *asking) progress(n int) {
	a.t.Helper()
	count := func() int {
		a.mu.Lock()
		defer a.mu.Unlock()
		return a.whole
	}
	began := count()
	await.True(a.t, "calls are answered", func() bool { return count() >= began+n })
}

// finish asks nothing more, waits for the answers that are due, and judges.
func (a *asking) finish() {
	a.t.Helper()
	close(a.enough)
	a.askers.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	a.t.Logf("%d calls: %d answered, %d made again under their name, ended %v", a.next-a.first, a.whole, a.again, a.ended)
	for k, n := range a.handled {
		if n > 1 {
			a.t.Errorf("call %d was done %d times", k, n)
		}
	}
	for _, k := range a.named {
		if a.handled[k] != 1 {
			a.t.Errorf("call %d has an answer and was done %d times", k, a.handled[k])
		}
	}
	for code := range a.ended {
		if code != agora.StreamAborted && code != agora.Timeout && code != agora.Unavailable {
			a.t.Errorf("%d calls ended with %s", a.ended[code], code)
		}
	}
}

func (a *asking) end() {
	a.stop()
	a.answers.Wait()
	a.askers.Wait()
	a.http.CloseIdleConnections()
}

// open makes a call of an agent at an edge, in the name of another, and returns the body of its answer; made again at
// another one where it has a name and its edge is lost.
func (a *asking) open(k int, caller, callee, request, name string) <-chan string {
	answer := make(chan string, 1)
	a.askers.Go(func() {
		for a.ctx.Err() == nil {
			r, err := http.NewRequestWithContext(a.ctx, http.MethodPost, "http://"+a.edges[k]+"/agents/"+callee+"/ask?as="+caller, strings.NewReader(`{"request_id":`+agoratest.Quote(request)+`}`))
			if err != nil {
				break
			}
			if name != "" {
				r.Header.Set("Idempotency-Key", url.QueryEscape(name))
			}
			resp, err := a.http.Do(r)
			if err == nil {
				b, cut := io.ReadAll(resp.Body)
				_ = resp.Body.Close()
				if cut == nil && resp.StatusCode != http.StatusServiceUnavailable {
					answer <- strings.TrimSpace(string(b))
					return
				}
			}
			if name == "" {
				break
			}
			k = len(a.edges) - 1
			<-time.After(20 * time.Millisecond)
		}
		answer <- ""
	})
	return answer
}
