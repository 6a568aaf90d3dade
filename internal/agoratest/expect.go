package agoratest

import (
	"slices"
	"time"

	"github.com/coder/websocket"

	"github.com/agora-relay/agora/internal/await"
)

// Expect takes the next frames, one for each pattern, and returns the last;
// see [Frame.Match].
func (c *Client) Expect(patterns ...string) Frame {
	c.t.Helper()
	return c.expect(Frame.Match, patterns)
}

// ExpectText is like Expect for the literal examples of a protocol; see [Frame.MatchText].
func (c *Client) ExpectText(patterns ...string) Frame {
	c.t.Helper()
	return c.expect(Frame.MatchText, patterns)
}

func (c *Client) expect(match func(Frame, string) string, patterns []string) (f Frame) {
	c.t.Helper()
	for _, p := range patterns {
		f = c.Take(p)
		if d := match(f, p); d != "" {
			c.t.Fatalf("got  %.500s\nwant %.500s\n%.300s\nthen %.1000q", f, p, d, c.Pending())
		}
	}
	return f
}

// next is Next with a test's patience.
func (c *Client) next() (Frame, bool) { return c.Next(patience) }

// Take returns the next frame, and fails the test when none comes; what says what was waited for.
func (c *Client) Take(what string) Frame {
	c.t.Helper()
	f, ok := c.next()
	if !ok {
		c.t.Fatalf("nothing came (connection: %v), want %.500s", c.Gone(), what)
	}
	return f
}

// ExpectAll takes as many frames as there are patterns, in whatever order they come, and returns them in that of the
// patterns.
func (c *Client) ExpectAll(patterns ...string) []Frame {
	c.t.Helper()
	out := make([]Frame, len(patterns))
	for range patterns {
		f := c.Take(patterns[0])
		at := slices.IndexFunc(patterns, func(p string) bool { return p != "" && f.Match(p) == "" })
		if at < 0 {
			c.t.Fatalf("got  %.500s\nwant one of %.1000q", f, patterns)
		}
		out[at] = f
		patterns = slices.Clone(patterns)
		patterns[at] = ""
	}
	return out
}

// Await passes over frames until one matches, and returns it.
func (c *Client) Await(pattern string) Frame {
	c.t.Helper()
	for {
		if f := c.Take(pattern); f.Match(pattern) == "" {
			return f
		}
	}
}

// ExpectNone fails the test when a frame comes before done says true.
func (c *Client) ExpectNone(done func() bool) {
	c.t.Helper()
	for !done() {
		if f, ok := c.Next(5 * time.Millisecond); ok {
			c.t.Fatalf("got %.500s, want nothing", f)
		}
		if err := c.Gone(); err != nil {
			c.t.Fatalf("connection is gone: %v", err)
		}
	}
}

// Barrier has the edge answer everything sent before: its own answer must be
// the next frame, so there was none to anything else.
func (c *Client) Barrier() {
	c.t.Helper()
	c.Send(`{"type":"space.list","id":"barrier"}`)
	c.Expect(`{"type":"space.list","id":"barrier"}`)
}

// ExpectClosed waits for the connection to end with a close code, nothing before it.
func (c *Client) ExpectClosed(code int) {
	c.t.Helper()
	if f, ok := c.next(); ok {
		c.t.Fatalf("got %.500s, want close code %d", f, code)
	}
	c.checkClosed(code)
}

// AwaitClosed waits for the connection to end with a close code, whatever comes before it.
func (c *Client) AwaitClosed(code int) {
	c.t.Helper()
	for ok := true; ok; {
		_, ok = c.next()
	}
	c.checkClosed(code)
}

func (c *Client) checkClosed(code int) {
	c.t.Helper()
	err := c.Gone()
	if err == nil {
		c.t.Fatalf("connection is open, want close code %d", code)
	}
	if got := int(websocket.CloseStatus(err)); got != code {
		c.t.Fatalf("close code %d (%v), want %d", got, err, code)
	}
}

// Pending returns what has come and was not taken.
func (c *Client) Pending() []Frame {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.frames)
}

// Until waits for a condition and fails the test when it does not come true.
func (c *Client) Until(what string, done func() bool) {
	c.t.Helper()
	await.True(c.t, what, done)
}
