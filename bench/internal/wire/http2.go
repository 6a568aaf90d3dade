package wire

import (
	"bufio"
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// http2 is a connection that speaks HTTP/2 without TLS, as barely as that goes: headers go without compression, and
// windows are as large as they may be. One goroutine reads.
type http2 struct {
	*socket.Timed
	addr, token string
	r           *bufio.Reader
	gone        chan struct{} // closed when nothing can be read any more

	mu      sync.Mutex // guards the fields below, and writing
	streams map[uint32]*exchange2
	next    uint32
	out     []byte
	window  int64 // what may still come
	shares  int
	err     error
}

// exchange2 is a request and its answer. The goroutine that reads has all but what is sent.
type exchange2 struct {
	status int
	begun  chan struct{}      // closed once there is a status
	ended  chan struct{}      // closed once the answer is complete; nil for a downlink
	body   []byte             // guarded by mu of the connection: what nobody has taken
	data   func(piece []byte) // guarded by it; takes what comes
}

// Types, flags and settings of frames.
const (
	h2Data, h2Headers, h2Reset, h2Settings, h2Ping, h2GoAway, h2Window = 0, 1, 3, 4, 6, 7, 8

	h2EndStream, h2Ack, h2EndHeaders = 1, 1, 4

	h2TableSize, h2Push, h2InitialWindow, h2MaxFrame = 1, 2, 4, 5
)

const largeWindow = 1<<31 - 1

// dialHTTP2 connects, and has what comes read.
func dialHTTP2(ctx context.Context, addr, token string) (*http2, error) {
	nc, err := connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	c := &http2{
		Timed: nc, addr: addr, token: token, r: bufio.NewReaderSize(nc, readBuffer), gone: make(chan struct{}), streams: map[uint32]*exchange2{}, next: 1, window: largeWindow,
	}
	hi := []byte("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n")
	hi = appendFrame2(hi, h2Settings, 0, 0, appendSettings(nil, h2TableSize, 0, h2Push, 0, h2InitialWindow, largeWindow, h2MaxFrame, 1<<20))
	hi = appendFrame2(hi, h2Window, 0, 0, binary.BigEndian.AppendUint32(nil, largeWindow-65535))
	if _, err := nc.Write(hi); err != nil {
		nc.Close()
		return nil, err
	}
	go func() { // gone says when it has ended
		defer close(c.gone)
		c.read()
	}()
	return c, nil
}

func appendSettings(dst []byte, pairs ...uint32) []byte {
	for i := 0; i < len(pairs); i += 2 {
		dst = binary.BigEndian.AppendUint32(binary.BigEndian.AppendUint16(dst, uint16(pairs[i])), pairs[i+1])
	}
	return dst
}

func appendFrame2(dst []byte, kind, flags byte, stream uint32, payload []byte) []byte {
	n := len(payload)
	dst = append(dst, byte(n>>16), byte(n>>8), byte(n), kind, flags)
	return append(binary.BigEndian.AppendUint32(dst, stream), payload...)
}

// appendField appends a field of a header, literally.
func appendField(dst []byte, name, value string) []byte {
	dst = append(append(dst, 0, byte(len(name))), name...)
	if n := len(value); n < 127 {
		dst = append(dst, byte(n))
	} else {
		dst = binary.AppendUvarint(append(dst, 127), uint64(n-127))
	}
	return append(dst, value...)
}

// begin sends a request. Its answer is taken by x.
func (c *http2) begin(method, path string, body []byte, x *exchange2) (uint32, error) {
	var h []byte
	for _, f := range [][2]string{
		{":method", method}, {":scheme", "http"}, {":authority", c.addr}, {":path", path},
		{"authorization", "Bearer " + c.token}, {"content-type", "application/json"},
	} {
		h = appendField(h, f[0], f[1])
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil {
		return 0, c.err
	}
	id := c.next
	c.next += 2
	c.streams[id] = x
	flags := byte(h2EndHeaders)
	if body == nil {
		flags |= h2EndStream
	}
	if c.out = appendFrame2(c.out[:0], h2Headers, flags, id, h); body != nil {
		c.out = appendFrame2(c.out, h2Data, h2EndStream, id, body)
	}
	_, err := c.Write(c.out)
	return id, err
}

// read takes what comes until nothing can be read any more.
func (c *http2) read() {
	var payload []byte
	for {
		var head [9]byte
		err := c.fill(head[:])
		if err == nil {
			if n := int(head[0])<<16 | int(head[1])<<8 | int(head[2]); n > cap(payload) {
				payload = make([]byte, n)
			} else {
				payload = payload[:n]
			}
			err = c.fill(payload)
		}
		if err == nil {
			err = c.frame(head[3], head[4], binary.BigEndian.Uint32(head[5:]), payload)
		}
		if err != nil {
			c.fail(err)
			return
		}
	}
}

func (c *http2) fill(b []byte) error {
	for n := 0; n < len(b); {
		m, err := c.r.Read(b[n:])
		if err != nil {
			return err
		}
		n += m
	}
	return nil
}

// fail ends everything.
func (c *http2) fail(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.err = err
	c.Conn.Close()
}

// frame takes a frame.
func (c *http2) frame(kind, flags byte, stream uint32, payload []byte) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	x := c.streams[stream]
	switch {
	case kind == h2Settings && flags&h2Ack == 0:
		_, err := c.Write(appendFrame2(nil, h2Settings, h2Ack, 0, nil))
		return err
	case kind == h2Ping && flags&h2Ack == 0:
		_, err := c.Write(appendFrame2(nil, h2Ping, h2Ack, 0, payload))
		return err
	case kind == h2GoAway || kind == h2Reset && x != nil:
		return fmt.Errorf("the server ends it: %q", payload)
	case kind == h2Headers && x != nil && x.status == 0:
		x.status = statusIn(payload)
		close(x.begun)
	case kind == h2Data:
		if err := c.came(len(payload)); err != nil {
			return err
		}
		if x != nil && x.data != nil {
			x.data(payload)
		} else if x != nil {
			x.body = append(x.body, payload...)
		}
	}
	if x != nil && flags&h2EndStream != 0 && (kind == h2Data || kind == h2Headers) {
		delete(c.streams, stream)
		if x.ended == nil {
			return fmt.Errorf("the events have ended")
		}
		close(x.ended)
	}
	return nil
}

// came opens the window again now and then.
func (c *http2) came(n int) error {
	if c.window -= int64(n); c.window > largeWindow/2 {
		return nil
	}
	more := largeWindow - c.window
	c.window += more
	_, err := c.Write(appendFrame2(nil, h2Window, 0, 0, binary.BigEndian.AppendUint32(nil, uint32(more))))
	return err
}

// statusIn returns the status that a block of headers begins with, of those that matter; 1 for others. It has no table
// to look anything up in.
func statusIn(block []byte) int {
	for len(block) > 0 && block[0]>>5 == 1 { // the size of the table, which is none
		block = block[1:]
	}
	switch {
	case len(block) > 0 && block[0] == 0x88:
		return 200
	case len(block) > 3 && block[0] >= 0x08 && block[0] <= 0x0e && string(block[1:4]) == "\x82\x10\x05": // a name of the static table, and 202 in Huffman's code
		return 202
	}
	return 1
}

// takes reports whether the connection has room for one more downlink of so many, and counts it.
func (c *http2) takes(most int) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err != nil || c.shares >= most {
		return false
	}
	c.shares++
	return true
}

// post posts an envelope.
func (c *http2) post(body []byte) (int, []byte, error) {
	x := &exchange2{begun: make(chan struct{}), ended: make(chan struct{})}
	if _, err := c.begin("POST", "/a2a", body, x); err != nil {
		return 0, nil, err
	}
	select {
	case <-x.ended:
		return x.status, x.body, nil
	case <-c.gone:
		return 0, nil, c.err
	}
}

// SetWriteDeadline implements uplink: a post waits for what is read.
func (c *http2) SetWriteDeadline(t time.Time) error { return c.SetDeadline(t) }

// Close ends the connection, and returns when nothing reads it any more.
func (c *http2) Close() error {
	err := c.Conn.Close()
	<-c.gone
	return err
}

// downlink2 is a downlink and what is posted beside it.
type downlink2 struct {
	*http2
	x *exchange2
}

// down asks for events at a path.
func (c *http2) down(path string) (*downlink2, error) {
	x := &exchange2{begun: make(chan struct{})}
	if _, err := c.begin("GET", path, nil, x); err != nil {
		return nil, err
	}
	select {
	case <-x.begun:
	case <-c.gone:
		return nil, c.err
	case <-time.After(Patience):
		return nil, fmt.Errorf("%s is not answered", path)
	}
	if x.status != 200 {
		return nil, fmt.Errorf("%s is refused", path)
	}
	return &downlink2{c, x}, nil
}

// events hands on the data of all events, in the goroutine that reads the connection.
func (d *downlink2) events(data func([]byte)) error {
	var lines eventLines
	take := func(b []byte) { lines.feed(b, data) }
	d.mu.Lock()
	if len(d.x.body) > 0 {
		take(d.x.body)
		d.x.body = nil
	}
	d.x.data = take
	d.mu.Unlock()
	<-d.gone
	return d.err
}
