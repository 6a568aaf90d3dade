//go:build chaos

package overload

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"strconv"
	"sync"
	"time"
)

// agent is a bare WebSocket that costs next to nothing, so that thousands fit beside what they test.
// It answers pings while it reads.
type agent struct {
	id     string
	socket net.Conn
	in     *bufio.Reader
	status int // of the HTTP answer

	mu sync.Mutex // guards writing
}

var errRefused = errors.New("refused before the upgrade")

// dial connects an agent, bound by its URL. On errRefused the agent has the status.
func dial(at, id, query string) (*agent, error) {
	u, err := url.Parse(at)
	if err != nil {
		return nil, err
	}
	socket, err := net.DialTimeout("tcp", u.Host, 10*time.Second)
	if err != nil {
		return nil, err
	}
	a := &agent{id: id, socket: socket, in: bufio.NewReaderSize(socket, 1024)}
	socket.SetDeadline(time.Now().Add(20 * time.Second))
	fmt.Fprintf(socket, "GET %s?agent_id=%s&%s HTTP/1.1\r\nHost: %s\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n"+
		"Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n", u.Path, id, query, u.Host)
	r, err := http.ReadResponse(a.in, nil)
	if err != nil {
		socket.Close()
		return nil, err
	}
	a.status = r.StatusCode
	if r.StatusCode != http.StatusSwitchingProtocols {
		socket.Close()
		return a, errRefused
	}
	return a, nil
}

// join connects an agent and waits until it is registered.
func join(at, id, query string) (*agent, []byte, error) {
	a, err := dial(at, id, query)
	if err != nil {
		return nil, nil, err
	}
	f, err := a.next()
	if err == nil && !bytes.Contains(f, []byte(`"agent.registered"`)) {
		err = fmt.Errorf("%s", f)
	}
	if err != nil {
		a.socket.Close()
		return nil, nil, err
	}
	a.socket.SetDeadline(time.Time{})
	return a, f, nil
}

// narrow makes the agent's system take little before the agent itself reads, and widen as much as usual.
func (a *agent) narrow() { a.socket.(*net.TCPConn).SetReadBuffer(32 << 10) }
func (a *agent) widen()  { a.socket.(*net.TCPConn).SetReadBuffer(1 << 20) }

// next returns the next text frame; a close frame is an error that names its code.
func (a *agent) next() ([]byte, error) {
	for {
		op, b, err := a.frame()
		switch {
		case err != nil:
			return nil, err
		case op == 1:
			return b, nil
		case op == 8 && len(b) >= 2:
			return nil, fmt.Errorf("close %d", binary.BigEndian.Uint16(b))
		case op == 8:
			return nil, io.EOF
		case op == 9:
			if err := a.write(10, b); err != nil {
				return nil, err
			}
		}
	}
}

// frame reads one frame of a server, which is never fragmented.
func (a *agent) frame() (op byte, b []byte, err error) {
	var head [10]byte
	if _, err := io.ReadFull(a.in, head[:2]); err != nil {
		return 0, nil, err
	}
	op = head[0] & 15
	n, more := uint64(head[1]), 0
	switch head[1] {
	case 126:
		more = 2
	case 127:
		more = 8
	}
	if more > 0 {
		if _, err := io.ReadFull(a.in, head[10-more:]); err != nil {
			return 0, nil, err
		}
		clear(head[:10-more])
		n = binary.BigEndian.Uint64(head[2:])
	}
	b = make([]byte, n)
	_, err = io.ReadFull(a.in, b)
	return op, b, err
}

// say sends a text frame.
func (a *agent) say(format string, args ...any) error {
	return a.write(1, fmt.Appendf(nil, format, args...))
}

// write sends a frame, masked with zeros.
func (a *agent) write(op byte, b []byte) error {
	out := []byte{0x80 | op, 0x80 | byte(len(b))}
	switch {
	case len(b) > 0xffff:
		out[1] = 0x80 | 127
		out = binary.BigEndian.AppendUint64(out, uint64(len(b)))
	case len(b) > 125:
		out[1] = 0x80 | 126
		out = binary.BigEndian.AppendUint16(out, uint16(len(b)))
	}
	out = append(append(out, 0, 0, 0, 0), b...)
	a.mu.Lock()
	defer a.mu.Unlock()
	_, err := a.socket.Write(out)
	return err
}

// field returns the value of a number or string in a frame, as it stands; empty when it is not there.
func field(f []byte, key string) string {
	_, rest, ok := bytes.Cut(f, []byte(`"`+key+`":`))
	if !ok {
		return ""
	}
	if end := bytes.IndexAny(rest, ",}"); end >= 0 {
		rest = rest[:end]
	}
	return string(bytes.Trim(rest, `"`))
}

func number(f []byte, key string) uint64 {
	n, _ := strconv.ParseUint(field(f, key), 10, 64) // what is not there is 0
	return n
}
