package reliability

import (
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// listener is an agent at a bare socket that keeps what it is sent, each frame once, and comes back at another edge
// where its own is gone.
type listener struct {
	t    testing.TB
	id   string
	urls []string
	over chan struct{}
	runs sync.WaitGroup

	mu    sync.Mutex // guards the fields below
	heard []agoratest.Frame
	last  uint64 // position of the last of them
	said  []string
	conn  *agoratest.Client // nil while there is none
}

// startListener returns when the agent is registered with the first of the edges.
func startListener(t testing.TB, id string, urls ...string) *listener {
	t.Helper()
	l := &listener{t: t, id: id, urls: urls, over: make(chan struct{})}
	l.runs.Go(l.run)
	t.Cleanup(l.end)
	await.True(t, id+" is registered", func() bool {
		l.mu.Lock()
		defer l.mu.Unlock()
		return l.conn != nil
	})
	return l
}

func (l *listener) end() {
	select {
	case <-l.over:
	default:
		close(l.over)
	}
	l.runs.Wait()
}

func (l *listener) run() {
	token := ""
	for k := 0; ; k++ {
		select {
		case <-l.over:
			return
		default:
		}
		if c := l.register(l.urls[k%len(l.urls)], &token); c != nil {
			l.listen(c)
			c.Drop()
		} else {
			<-time.After(50 * time.Millisecond)
		}
	}
}

// register registers with an edge, and says again all that it has said: what is stored is known by its number.
func (l *listener) register(url string, token *string) *agoratest.Client {
	c, _, err := agoratest.TryConnect(l.t, agoratest.Direct{}, url, "", nil)
	if err != nil {
		return nil
	}
	resume := ""
	if *token != "" {
		resume = fmt.Sprintf(`,"resume_token":%s,"last_seq":%d`, *token, l.last)
	}
	_ = c.Try(fmt.Sprintf(`{"type":"agent.register","agent":{"id":%q}%s}`, l.id, resume)) // the answer tells
	welcome, _ := c.Next(10 * time.Second)
	if welcome.Type() != "agent.registered" {
		c.Drop()
		return nil
	}
	*token = welcome.Raw("resume_token")
	l.mu.Lock()
	defer l.mu.Unlock()
	l.conn = c
	for _, frame := range l.said {
		_ = c.Try(frame)
	}
	return c
}

// listen keeps what comes until the connection is gone.
func (l *listener) listen(c *agoratest.Client) {
	for {
		select {
		case <-l.over:
			return
		default:
		}
		f, ok := c.Next(100 * time.Millisecond)
		if !ok && c.Gone() == nil {
			continue
		}
		l.mu.Lock()
		if !ok {
			l.conn = nil
			l.mu.Unlock()
			return
		}
		if seq := f.Seq(); f.Type() != "receipt" && seq > l.last { // a receipt's position is one of somebody else's mailbox
			l.last = max(l.last, seq)
			l.heard = append(l.heard, f)
		}
		l.mu.Unlock()
	}
}

// says says frames to one agent, without the brace that begins them: they are numbered, so that they are stored once,
// wherever the agent continues.
func (l *listener) says(to string, frames ...string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range frames {
		f = fmt.Sprintf(`{"to":%q,"n":%d,%s}`, to, len(l.said)+1, f)
		l.said = append(l.said, f)
		if l.conn != nil {
			_ = l.conn.Try(f)
		}
	}
}

// count returns how many of the frames that it was sent fit a pattern.
func (l *listener) count(pattern string) (n int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, f := range l.heard {
		if f.Match(pattern) == "" {
			n++
		}
	}
	return n
}

// all returns what it was sent.
func (l *listener) all() []agoratest.Frame {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.heard)
}
