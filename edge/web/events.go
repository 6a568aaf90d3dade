package web

import (
	"bytes"
	"errors"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
)

// Event is one server-sent event.
type Event struct {
	ID   string // by which a peer that comes back says what it has; left out if empty
	Name string // its type; message if empty
	Data []byte // any text: what a line ends with in it (LF, CR or both) is an LF at the peer
}

// Events is an answer of server-sent events. Its methods may be called by several goroutines, until the handler has
// returned.
type Events struct {
	x       *Exchange
	every   time.Duration // between two comments
	pulse   pulse
	control *http.ResponseController // of the answer itself, like out
	out     http.ResponseWriter

	mu    sync.Mutex // guards the fields below, and the answer
	buf   []byte
	over  bool
	stuck error // why nothing can be written any more
}

// errHead ends an exchange in which nothing but the header of an answer was asked for.
var errHead = errors.New("the header alone was asked for")

// Events begins an answer of events. It lasts: see [Exchange.Last]. While nothing is said, a comment is, so that
// nothing on the way takes the connection for dead. What the handler returns is the last event, of type error, where it
// is one.
func (x *Exchange) Events() (*Events, error) { return x.EventsEvery(x.kit.node.heartbeat) }

// EventsEvery is [Exchange.Events] with comments at an interval of the door's.
func (x *Exchange) EventsEvery(every time.Duration) (*Events, error) {
	h := x.w.Header()
	h.Set("Content-Type", "text/event-stream")
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("X-Accel-Buffering", "no") // nginx would gather them
	x.begun = true
	x.w.WriteHeader(http.StatusOK)
	if x.Request.Method == http.MethodHead {
		return nil, errHead
	}
	x.Last()
	e := &Events{x: x, every: every}
	e.out, e.pulse.write = unpaced(x.w)
	e.control = http.NewResponseController(e.out)
	x.events = e
	e.mu.Lock()
	defer e.mu.Unlock()
	e.pulse.timer = time.AfterFunc(time.Hour, e.looks)
	e.pulse.timer.Reset(e.pulse.step(every))
	return e, e.flush() // so that the peer knows that it was let in
}

// Send writes an event, and returns when the socket has taken it. INVALID_REQUEST where id or name are no line; any
// other error means that the peer is gone, or takes nothing, and the request is over.
func (e *Events) Send(v Event) error {
	if strings.ContainsAny(v.ID, "\r\n\x00") || strings.ContainsAny(v.Name, "\r\n") {
		return agora.Errorf(agora.InvalidRequest, "id and type of an event are lines")
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.append(v)
	return e.flush()
}

// Comment writes a line that says nothing to a peer, and returns as Send does.
func (e *Events) Comment() error {
	e.mu.Lock()
	defer e.mu.Unlock()
	e.buf = append(e.buf, ":\n\n"...)
	return e.flush()
}

// SendLines writes events that [AppendEvent] has made, all at once, and returns as Send does.
func (e *Events) SendLines(lines []byte) error {
	e.mu.Lock()
	defer e.mu.Unlock()
	own := e.buf
	e.buf = lines
	err := e.flush()
	e.buf = own
	return err
}

// AppendEvent appends the lines of an event with an id, which is left out where it is 0, and data: any text, in which
// an end of line (LF, CR or both) is an LF at the peer.
func AppendEvent(dst []byte, id uint64, data []byte) []byte {
	dst = BeginEvent(dst, id)
	return EndEvent(append(dst, data...), len(dst))
}

const dataField = "data: "

// BeginEvent appends the lines of an event up to its data, which are to be appended by the caller, who then calls
// [EndEvent].
func BeginEvent(dst []byte, id uint64) []byte {
	if id > 0 {
		dst = append(strconv.AppendUint(append(dst, "id: "...), id, 10), '\n')
	}
	return append(dst, dataField...)
}

// EndEvent appends what ends an event whose data stand in dst from at on, where BeginEvent has left off. It allocates
// nothing for data without an end of line, when dst has room.
func EndEvent(dst []byte, at int) []byte {
	data := dst[at:]
	if bytes.IndexByte(data, '\n') < 0 && bytes.IndexByte(data, '\r') < 0 {
		return append(dst, "\n\n"...)
	}
	rest, more := bytes.Clone(data), true
	for dst = dst[:at-len(dataField)]; more; {
		var text []byte
		text, rest, more = cutLine(rest)
		dst = append(append(append(dst, dataField...), text...), '\n')
	}
	return append(dst, '\n')
}

// append adds an event to what is to be written. mu is held.
func (e *Events) append(v Event) {
	if v.ID != "" {
		e.line("id", []byte(v.ID))
	}
	if v.Name != "" {
		e.line("event", []byte(v.Name))
	}
	e.buf = AppendEvent(e.buf, 0, v.Data)
}

func (e *Events) line(field string, text []byte) {
	e.buf = append(append(append(append(e.buf, field...), ": "...), text...), '\n')
}

// cutLine returns what stands before the end of a line, what stands behind it, and whether there is one.
func cutLine(b []byte) (text, rest []byte, more bool) {
	i := bytes.IndexAny(b, "\r\n")
	if i < 0 {
		return b, nil, false
	}
	rest = b[i+1:]
	if b[i] == '\r' && len(rest) > 0 && rest[0] == '\n' {
		rest = rest[1:]
	}
	return b[:i], rest, true
}

// looks is what the timer does: it cuts a peer off that takes nothing, and says that the edge is there where nothing
// else was said.
func (e *Events) looks() {
	if e.pulse.late() {
		e.pulse.cut.Store(true)
		_ = e.control.SetWriteDeadline(time.Unix(1, 0)) // which ends the writing; where it can't be set there is no connection
		return
	}
	if e.pulse.quiet(e.every) {
		e.mu.Lock()
		defer e.mu.Unlock()
		if !e.over && e.stuck == nil {
			e.buf = append(e.buf, ":\n\n"...)
			_ = e.flush() // which has ended the request
		}
	}
}

// flush writes what there is to the socket. mu is held.
func (e *Events) flush() error {
	if e.stuck != nil {
		return e.stuck
	}
	size := int64(len(e.buf))
	e.x.queue(size)
	n, err := e.write(e.buf)
	e.x.queue(-size)
	e.buf = e.buf[:0]
	e.x.kit.stats.BytesOut.Add(int64(n))
	if err == nil {
		return nil
	}
	if stalled(err) {
		e.x.kit.stats.Stalled.Add(1)
	}
	e.stuck = err
	e.x.End(err)
	return err
}

// write writes b and has it sent, piece by piece, each of which has a time of its own.
func (e *Events) write(b []byte) (n int, err error) {
	defer e.pulse.rests()
	for {
		e.pulse.begins()
		m, err := e.out.Write(b[n:min(len(b), n+piece)])
		if n += m; err == nil && n == len(b) {
			err = e.control.Flush()
		}
		if e.pulse.cut.Load() {
			err = errors.Join(os.ErrDeadlineExceeded, err) // HTTP/2 says that the stream is closed
		}
		if err != nil || n == len(b) {
			return n, err
		}
	}
}

// end writes why the events end, if there is a reason, and nothing after that.
func (e *Events) end(err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	defer e.pulse.stop()
	e.over = true
	if err == nil || e.stuck != nil || e.x.gone() {
		return
	}
	_, fault := statusOf(err)
	e.x.kit.stats.fault(fault.Code)
	if fault.RetryAfter > 0 {
		e.line("retry", strconv.AppendInt(nil, fault.RetryAfter.Milliseconds(), 10))
	}
	v := Event{Name: "error"}
	if e.x.path.Fault != nil {
		v.Name = "" // its data says what it is
	}
	_, v.Data = e.x.path.form(e.x.Request, err, fault)
	v.Data = bytes.TrimSuffix(v.Data, []byte{'\n'})
	e.append(v)
	_ = e.flush() // the peer may have gone
}
