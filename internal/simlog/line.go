package simlog

import (
	"io"
	"maps"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/simnet"
)

// line is a client's connection to the log, on which faults happen to single frames.
type line struct {
	log  *Log
	up   *simnet.Inlet // to the server
	part []byte        // written, and not a whole frame yet; the one who writes has it alone

	mu       sync.Mutex        // guards the fields below
	changed  sync.Cond         // on mu
	down     []byte            // to be read
	held     [][]byte          // live frames that come late
	tail     [][]byte          // the last live frames
	inboxes  map[string]string // where the client hears answers: subscriptions, by subject
	asked    map[string]record // published, and not answered yet, by where the answer goes
	failed   error             // why nothing comes any more
	read     time.Time         // when the client has read last, or was not behind
	deadline time.Time         // of reading
}

// record is one that a client has published.
type record struct {
	key string // its stream and id
	at  time.Time
}

const (
	tailLength = 8                // how many live frames are remembered, to come once more
	mostAsked  = 1 << 12          // records whose answers are waited for; when there are more, nothing is known of all of them
	mostDown   = 32 << 20         // what is kept for a client that does not read, beside what the server has not passed on yet, before that hangs up
	buffered   = 1 << 20          // what the systems between them keep
	patience   = 10 * time.Second // with a client that does not read more than that
)

func newLine(l *Log) *line {
	d := &line{log: l, up: simnet.NewInlet(), inboxes: map[string]string{}, asked: map[string]record{}, read: time.Now()}
	d.changed.L = &d.mu
	return d
}

// gone is what the server's end says when it is closed.
func (d *line) gone() {
	d.end(io.EOF)
	d.log.forget(d)
}

// over returns why the server can't write any more.
func (d *line) over() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed != nil {
		return io.ErrClosedPipe
	}
	return nil
}

// sidsOf returns the subscriptions under which answers to a request come. A client may have two for one subject: that
// of all its answers, and one of its own.
func (d *line) sidsOf(reply string) (sids []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for prefix, sid := range d.inboxes {
		if matches(prefix, reply) {
			sids = append(sids, sid)
		}
	}
	slices.Sort(sids)
	return sids
}

// subscribed notes where the client hears answers.
func (d *line) subscribed(f *frame) {
	words := strings.Fields(string(f.raw))
	if len(words) < 3 || !strings.HasPrefix(words[1], "_INBOX.") {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	d.inboxes[words[1]] = words[len(words)-1]
}

// unsubscribed notes where the client hears answers no more: one that reads the log has an inbox for each page. What
// ends by itself, after so many, stays.
func (d *line) unsubscribed(f *frame) {
	words := strings.Fields(string(f.raw))
	if len(words) != 2 {
		return
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	maps.DeleteFunc(d.inboxes, func(_, sid string) bool { return sid == words[1] })
}

// answer gives the client answers of its own to a request; nobody waits where to is empty.
func (d *line) answer(to string, all ...reply) {
	if to == "" {
		return
	}
	for _, sid := range d.sidsOf(to) {
		for _, r := range all {
			d.pass(r.frame(to, sid))
		}
	}
}

// sent notes a record that is answered at a subject.
func (d *line) sent(reply string, r record) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.asked) >= mostAsked {
		clear(d.asked)
	}
	d.asked[reply] = r
}

// answered returns the record that is answered at a subject.
func (d *line) answered(reply string) (record, bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r, ok := d.asked[reply]
	delete(d.asked, reply)
	return r, ok
}

// pass gives a frame to the client.
func (d *line) pass(raw []byte) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.give(raw)
}

// give gives the client frames, or hangs up where it does not read. mu is held.
func (d *line) give(frames ...[]byte) {
	if len(d.down) <= buffered {
		d.read = time.Now()
	}
	for _, raw := range frames {
		if d.failed == nil {
			d.down = append(d.down, raw...)
		}
	}
	if d.failed == nil && (len(d.down) > mostDown || time.Since(d.read) > patience) {
		d.down = d.down[:min(len(d.down), buffered)]
		d.failed = io.EOF
		d.up.Close()
	}
	d.changed.Broadcast()
}

// hangUp ends the connection, as its server does.
func (d *line) hangUp() {
	d.end(io.EOF)
	d.up.Close()
}

// live gives the client what was republished: held, later.
func (d *line) live(raw []byte, late bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	raw = append([]byte(nil), raw...)
	if d.tail = append(d.tail, raw); len(d.tail) > tailLength {
		d.tail = d.tail[1:]
	}
	if late || len(d.held) > 0 {
		d.held = append(d.held, raw)
		return
	}
	d.give(raw)
}

// release gives the client what was held.
func (d *line) release() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.give(d.held...)
	d.held = nil
}

// repeat gives the client the last live frames once more, as a new leader does that does not know what the old one had
// passed on.
func (d *line) repeat() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.give(d.tail...)
}

func (d *line) end(err error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.failed == nil {
		d.failed = err
	}
	d.changed.Broadcast()
}

// Read reads what has come.
func (d *line) Read(p []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if len(d.down) == 0 && !d.deadline.IsZero() {
		defer time.AfterFunc(time.Until(d.deadline), d.changed.Broadcast).Stop()
	}
	for len(d.down) == 0 && d.failed == nil {
		if !d.deadline.IsZero() && !time.Now().Before(d.deadline) {
			return 0, os.ErrDeadlineExceeded
		}
		d.changed.Wait()
	}
	if len(d.down) == 0 {
		return 0, d.failed
	}
	d.read = time.Now()
	n := copy(p, d.down)
	if n == len(d.down) {
		d.down = d.down[:0]
	} else {
		d.down = d.down[n:]
	}
	return n, nil
}

// Write sends what makes a whole frame.
func (d *line) Write(p []byte) (int, error) {
	d.part = append(d.part, p...)
	var out []byte
	rest := d.part
	for {
		f, n := split(rest)
		if n == 0 {
			break
		}
		out = append(out, d.log.leaves(d, &f)...)
		rest = rest[n:]
	}
	d.part = append(d.part[:0], rest...)
	if len(out) > 0 {
		if _, err := d.up.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Close ends the connection. What is under way still arrives, unless the server has gone.
func (d *line) Close() error {
	d.end(io.ErrClosedPipe)
	d.up.Close()
	return nil
}

// SetReadDeadline sets the deadline of reading.
func (d *line) SetReadDeadline(t time.Time) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.deadline = t
	d.changed.Broadcast()
	return nil
}

// SetWriteDeadline sets the deadline of writing.
func (d *line) SetWriteDeadline(t time.Time) error {
	d.up.SetWriteDeadline(t)
	return nil
}

// SetDeadline sets the deadlines of reading and writing.
func (d *line) SetDeadline(t time.Time) error {
	_ = d.SetWriteDeadline(t)
	return d.SetReadDeadline(t)
}

// LocalAddr returns an address that is nowhere.
func (d *line) LocalAddr() net.Addr { return nowhere{} }

// RemoteAddr returns an address that is nowhere.
func (d *line) RemoteAddr() net.Addr { return nowhere{} }

type nowhere struct{}

func (nowhere) Network() string { return "pipe" }
func (nowhere) String() string  { return "pipe" }
