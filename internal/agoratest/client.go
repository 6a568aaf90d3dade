package agoratest

import (
	"context"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/coder/websocket"

	"github.com/agora-relay/agora/internal/faultnet"
)

// Dialer opens the connections of a test: straight to an edge, or through
// whatever stands before it.
type Dialer interface {
	// Dial opens a WebSocket. The response tells why the upgrade was refused.
	Dial(ctx context.Context, url string, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error)
}

// Direct connects straight to an edge.
type Direct struct{}

// Dial opens a WebSocket to the URL.
func (Direct) Dial(ctx context.Context, url string, o *websocket.DialOptions) (*websocket.Conn, *http.Response, error) {
	return websocket.Dial(ctx, url, o)
}

// Client is a bare WebSocket of a test: it answers pings, keeps what comes,
// and knows nothing else. Its methods are for the test's goroutine, but for
// Send, and fail the test when what they want does not come.
type Client struct {
	t      testing.TB
	ws     *websocket.Conn
	socket net.Conn
	line   *faultnet.Link
	reader sync.WaitGroup
	deaf   atomic.Bool
	pings  atomic.Int64
	heard  atomic.Int64 // when anything came last, in nanoseconds

	mu     sync.Mutex // guards the fields below
	frames []Frame    // that nobody has taken yet
	beats  int        // agent.heartbeat frames, which are not among them
	err    error      // why nothing comes any more
	news   chan struct{}
}

// Connect opens a client; the test's end closes it. query is that of the URL, header may be nil.
func Connect(t testing.TB, d Dialer, url, query string, header http.Header) *Client {
	t.Helper()
	c, resp, err := TryConnect(t, d, url, query, header)
	if err != nil {
		status := ""
		if resp != nil {
			status = resp.Status
		}
		t.Fatalf("connect %s?%s: %v %s", url, query, err, status)
	}
	return c
}

// TryConnect is like Connect for a connection that may be refused: before the upgrade there is a response, and the
// error.
func TryConnect(t testing.TB, d Dialer, url, query string, header http.Header) (*Client, *http.Response, error) {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return tryConnect(ctx, t, d, url, query, header)
}

func tryConnect(ctx context.Context, t testing.TB, d Dialer, url, query string, header http.Header) (*Client, *http.Response, error) {
	c := &Client{t: t, line: faultnet.New(), news: make(chan struct{}, 1)}
	c.heard.Store(time.Now().UnixNano())
	transport := &http.Transport{DisableKeepAlives: true, DialContext: c.dial}
	if query != "" {
		url += "?" + query
	}
	var resp *http.Response
	var err error
	c.ws, resp, err = d.Dial(ctx, url, &websocket.DialOptions{
		HTTPClient: &http.Client{Transport: transport}, HTTPHeader: header, OnPingReceived: c.pinged,
	})
	if err != nil {
		return nil, resp, err
	}
	c.ws.SetReadLimit(-1)
	c.reader.Go(c.read)
	t.Cleanup(c.Drop)
	return c, resp, nil
}

func (c *Client) dial(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := c.line.DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	c.socket = conn
	return conn, nil
}

// pinged reports whether a ping is to be answered.
func (c *Client) pinged(context.Context, []byte) bool {
	c.pings.Add(1)
	c.heard.Store(time.Now().UnixNano())
	return !c.deaf.Load()
}

// read keeps what comes until the connection is gone.
func (c *Client) read() {
	for {
		_, b, err := c.ws.Read(context.Background())
		c.heard.Store(time.Now().UnixNano())
		c.mu.Lock()
		switch f := Frame(b); {
		case err != nil:
			c.err = err
		case strings.Contains(string(f), "agent.heartbeat") && f.Type() == "agent.heartbeat":
			c.beats++
		default:
			c.frames = append(c.frames, f)
		}
		c.mu.Unlock()
		select {
		case c.news <- struct{}{}:
		default:
		}
		if err != nil {
			return
		}
	}
}

// Try sends a frame as it stands and returns the error of a connection that is gone.
func (c *Client) Try(frame string) error {
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	return c.ws.Write(ctx, websocket.MessageText, []byte(frame))
}

// Send sends frames as they stand.
func (c *Client) Send(frames ...string) {
	c.t.Helper()
	for _, f := range frames {
		if err := c.Try(f); err != nil {
			c.t.Errorf("send %.200s: %v", f, err)
		}
	}
}

// SendBinary sends a binary frame.
func (c *Client) SendBinary(b []byte) {
	c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := c.ws.Write(ctx, websocket.MessageBinary, b); err != nil {
		c.t.Errorf("send binary: %v", err)
	}
}

// Close says goodbye with a close code, and waits for the answer.
func (c *Client) Close(code int) {
	_ = c.ws.Close(websocket.StatusCode(code), "") // the edge may have been quicker
	c.reader.Wait()
}

// Drop cuts the connection without a word.
func (c *Client) Drop() {
	_ = c.socket.Close()
	_ = c.ws.CloseNow() // the socket is closed already
	c.reader.Wait()
}

// Narrow has the system keep little of what comes until it is read.
func (c *Client) Narrow() {
	c.t.Helper()
	if err := c.socket.(*faultnet.Conn).NetConn().(*net.TCPConn).SetReadBuffer(4 << 10); err != nil {
		c.t.Fatal(err)
	}
}

// Pause stops reading from the socket, and with it the answers to pings, until Resume.
func (c *Client) Pause() { c.line.HoldReads(true) }

// Resume reads on.
func (c *Client) Resume() { c.line.HoldReads(false) }

// Deafen lets pings go unanswered from now on; frames are still read.
func (c *Client) Deafen() { c.deaf.Store(true) }

// Pings returns how many pings have come.
func (c *Client) Pings() int { return int(c.pings.Load()) }

// silence returns how long nothing has come, pings included.
func (c *Client) silence() time.Duration { return time.Since(time.Unix(0, c.heard.Load())) }

// Heartbeats returns how many agent.heartbeat frames have come; Expect passes over them.
func (c *Client) Heartbeats() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.beats
}

// Next returns the next frame, or ok false when none comes in time or the connection is gone.
func (c *Client) Next(within time.Duration) (f Frame, ok bool) {
	deadline := time.NewTimer(within)
	defer deadline.Stop()
	for {
		c.mu.Lock()
		if len(c.frames) > 0 {
			f, c.frames = c.frames[0], c.frames[1:]
			c.mu.Unlock()
			return f, true
		}
		gone := c.err != nil
		c.mu.Unlock()
		if gone {
			return "", false
		}
		select {
		case <-c.news:
		case <-deadline.C:
			return "", false
		}
	}
}

// Gone returns why the connection is gone, nil while it is not.
func (c *Client) Gone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.err
}
