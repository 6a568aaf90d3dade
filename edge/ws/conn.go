package ws

import (
	"errors"
	"io"
	"log/slog"
	"net"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/deliver"
	"github.com/agora-relay/agora/edge/ws/frame"
	"github.com/agora-relay/agora/wire"
)

// conn is one connection. It is its session's edge.Conn, and the line that its outbox writes to.
type conn struct {
	edge.Admission // which its end releases
	door           *Door
	socket         net.Conn
	out            deliver.Outbox
	stranger       atomic.Pointer[stranger] // nil once it is bound
	calls          atomic.Pointer[calls]    // nil until it makes one
	sizes          atomic.Pointer[sizes]    // of frames; nil where nothing was said of them, and none was large

	in       frame.Reader // the reading goroutine's, like the next two
	to       string       // addressee of the last frame
	streamID string       // its stream

	traffic traffic
	told    atomic.Int64 // frames that were queued beside deliveries

	mu      sync.Mutex // guards the fields below; the outbox may be locked, and is not called
	counted int64      // ticks since which faults are counted
	faults  int32      // that were told since
	code    int16      // of the first close frame
	why     edge.Cause // the connection ends; zero while it does not
}

// traffic is what went over a connection. What came in is counted by the verb that runs, what goes
// out by the writer: when neither runs any more it is complete.
type traffic struct {
	framesIn, bytesIn   int64
	framesOut, bytesOut int64
}

// newConn returns a connection of a door that has no socket yet.
func newConn(d *Door, a edge.Admission) *conn {
	c := &conn{door: d, Admission: a}
	c.out.Init(c, &d.writers, a)
	return c
}

// session is that of the agent; nil until the connection is bound. The reading goroutine binds it.
func (c *conn) session() *edge.Session { return c.out.Session.Load() }

// begin binds the connection where its URL says to whom, and has it read from. Reading ends
// with finish, by whichever goroutine reads last: until then each begins the next one.
func (c *conn) begin(h *hello) {
	c.watch()
	if h != nil {
		bindAtConnect(c, h)
		c.out.Rest()
	}
	c.door.work.Go(c.await)
}

// finish ends the connection that can't be read any more. When it returns the session knows, and the
// writer and the open calls have ended.
func (c *conn) finish(err error) {
	breach, broken := errors.AsType[frame.Breach](err)
	if broken {
		c.end(edge.Refused, breach.Code, breach.Text)
	}
	c.out.Shut()
	c.calls.Load().end()
	if !errors.Is(err, errClosed) && !broken {
		c.socket.Close()
		c.out.GiveUp()
	}
	c.out.Wait()
	if broken { // closing now would make the peer's system throw the close frame away
		c.socket.SetReadDeadline(time.Now().Add(c.door.cfg.Linger))
		io.Copy(io.Discard, c.socket)
	}
	c.unwatch()
	c.socket.Close()
	c.out.GiveUp()
	if t := c.calls.Load(); t != nil {
		t.work.Wait()
	}
	c.door.inner.Delete(c)
	c.door.dismiss(c)
}

// Wake is called by the session when Pull has something.
func (c *conn) Wake() { c.out.Wake() }

// Close says why, and closes: nothing is queued or pulled behind it. What is
// queued has until the linger to be taken, and the peer to answer.
func (c *conn) Close(r edge.Reason) {
	if b, ok := c.out.Begin(); ok {
		c.because(r.Cause, closeCode(r))
		if r.Code != "" {
			c.door.stats.fault(r.Code)
			b = c.appendFrame(b, &wire.Frame{Type: "error", Code: string(r.Code), Message: r.Text})
		}
		c.out.CommitLast(frame.AppendClose(b, closeCode(r), r.Text))
	}
	c.calls.Load().end()
}

// end closes with a code, for a cause.
func (c *conn) end(why edge.Cause, code int, text string) {
	if b, ok := c.out.Begin(); ok {
		c.because(why, code)
		c.out.CommitLast(frame.AppendClose(b, code, text))
	}
	c.calls.Load().end()
}

// turnOut closes for an error that the agent was told.
func (c *conn) turnOut(e *agora.Error) {
	code, _ := closeOf(e.Code)
	c.end(edge.Refused, code, e.Message)
}

// answerClose answers the peer's close frame, which may be a goodbye.
func (c *conn) answerClose(code int) {
	why := edge.Lost
	if code == frame.CloseNormal || code == frame.CloseAway || code == frame.CloseNoStatus {
		why = edge.Goodbye
	}
	c.end(why, code, "")
}

// Kill implements deliver.Line.
func (c *conn) Kill(why edge.Cause) {
	if why == edge.Stalled {
		c.door.stats.Stalled.Add(1)
	}
	c.because(why, 0)
	c.out.GiveUp()
	c.calls.Load().end()
	socket := c.socket
	if t, ok := socket.(interface{ NetConn() net.Conn }); ok {
		socket = t.NetConn() // no goodbye of TLS, which would wait for room as well
	}
	if s, ok := socket.(interface{ SetLinger(sec int) error }); ok {
		s.SetLinger(0) // an error means that it is closed already
	}
	socket.Close()
}

// Ended tells the session that the socket is gone: it implements deliver.Line.
func (c *conn) Ended(w *deliver.Writer) {
	s := c.session()
	if s == nil {
		return
	}
	how := c.ending()
	w.Waits()
	s.Report(how)
	s.Closed(how.Cause == edge.Goodbye)
}

// because notes why the connection ends, and the code of the close frame that was said first. The first word counts.
func (c *conn) because(why edge.Cause, code int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.why == 0 {
		c.why, c.code = why, int16(code)
	}
}

// ending is how the connection went.
func (c *conn) ending() edge.Ending {
	c.because(edge.Lost, 0)
	c.mu.Lock()
	defer c.mu.Unlock()
	e := edge.Ending{
		Cause: c.why, Code: int(c.code), FramesIn: c.traffic.framesIn, BytesIn: c.traffic.bytesIn,
		FramesOut: c.traffic.framesOut + c.told.Load(), BytesOut: c.traffic.bytesOut,
	}
	if z := c.sizes.Load(); z != nil && c.why == edge.Lost && c.code == frame.CloseTooBig { // a frame was larger than the peer takes
		e.Largest = z.at
	}
	return e
}

// Held returns the bytes that the edge keeps for the connection: of the frame
// that comes in, of what is queued or being written, and what its session has;
// and whether a verb or a writer is at work, or will be soon.
func (c *conn) Held() (held int64, working bool) {
	held, working = c.out.Held()
	held += c.in.Held()
	if s := c.session(); s != nil {
		held += s.Held()
	}
	return held, working
}

// Shed closes the connection, as the edge holds more than it can.
func (c *conn) Shed() { c.Close(edge.Overloaded) }

// floodWindow is the time within which too many faults end a connection.
const floodWindow = 10 * time.Second

// refuse answers a request with an error; an empty frame stands for one that could not be read.
func (c *conn) refuse(request *wire.Frame, err error) {
	f := request.Refuse(err)
	c.fault(&f, agora.AsError(err))
}

// fault queues an error's frame; too many of them in a short time end the
// connection. Those that only say "later" are not held against it.
func (c *conn) fault(f *wire.Frame, e *agora.Error) {
	c.door.stats.fault(e.Code)
	c.door.refusals.Note(e, c.attrs)
	c.queue(f)
	switch e.Code {
	case agora.Unavailable, agora.Timeout, agora.RateLimited:
		return
	}
	c.mu.Lock()
	if now := agora.Ticks(); c.faults == 0 || time.Duration(now-c.counted) > floodWindow {
		c.counted, c.faults = now, 0
	}
	c.faults++
	tooMany := int(c.faults) > c.door.cfg.MaxErrors
	c.mu.Unlock()
	if tooMany {
		c.end(edge.Refused, frame.ClosePolicy, "too many errors")
	}
}

// attrs name the connection in the log.
func (c *conn) attrs() []slog.Attr {
	s := c.session()
	if s == nil {
		return []slog.Attr{slog.String("from", c.From().String())}
	}
	return []slog.Attr{slog.String("agent", string(s.Agent())), slog.String("conn", s.Conn())}
}

// Close codes of Agora's own (RFC 6455 section 7.4.2).
const (
	closeTakenOver = 4001
	closeExists    = 4009
	closeKicked    = 4010
)

// closes are the close codes of the causes for which an edge ends a connection.
var closes = map[edge.Cause]int{
	edge.Silent:    frame.CloseAway,
	edge.TakenOver: closeTakenOver,
	edge.Kicked:    closeKicked,
	edge.Drained:   frame.CloseRestart,
	edge.Shed:      frame.CloseTryLater,
}

// closeOf returns the close code behind an error that ends the connection; false for one that does not by itself.
func closeOf(c agora.Code) (int, bool) {
	switch c {
	case agora.Unauthorized:
		return frame.ClosePolicy, true
	case agora.AgentExists:
		return closeExists, true
	case agora.Unavailable:
		return frame.CloseTryLater, true
	}
	return frame.ClosePolicy, false
}

// closeCode returns the close code of a reason.
func closeCode(r edge.Reason) int {
	if code, ok := closes[r.Cause]; ok {
		return code
	}
	code, _ := closeOf(r.Code)
	return code
}
