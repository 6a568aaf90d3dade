package wire

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"time"
)

// http1 is an agent's connections over HTTP/1.1.
type http1 struct {
	addr, token string
	down        net.Conn
	r           *bufio.Reader

	mu    sync.Mutex // guards the fields below; held while something is posted
	up    net.Conn   // nil until then
	in    *bufio.Reader
	out   []byte
	ended bool
}

// dialHTTP1 connects, and asks for events at a path.
func dialHTTP1(addr, token, path string) (*http1, error) {
	h := &http1{addr: addr, token: token}
	nc, err := net.DialTimeout("tcp", addr, Patience)
	if err != nil {
		return nil, err
	}
	h.down, h.r = nc, bufio.NewReaderSize(nc, readBuffer)
	nc.SetDeadline(time.Now().Add(Patience))
	_, err = fmt.Fprintf(nc, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, addr, token)
	if err == nil {
		var status int
		if status, _, err = answerHead(h.r); err == nil && status != 200 {
			err = fmt.Errorf("%s answered %d", path, status)
		}
	}
	nc.SetDeadline(time.Time{})
	if err != nil {
		nc.Close()
		return nil, err
	}
	return h, nil
}

// answerHead reads the status and the header of an answer, and returns the length of its body; -1 where it comes in chunks.
func answerHead(r *bufio.Reader) (status, length int, err error) {
	t := textproto.NewReader(r)
	line, err := t.ReadLine()
	if err != nil {
		return 0, 0, err
	}
	_, code, _ := strings.Cut(line, " ")
	header, err := t.ReadMIMEHeader()
	if err != nil {
		return 0, 0, err
	}
	if header.Get("Transfer-Encoding") != "" {
		return int(number([]byte(code))), -1, nil
	}
	return int(number([]byte(code))), int(number([]byte(header.Get("Content-Length")))), nil
}

// events hands on the data of all events.
func (h *http1) events(data func([]byte)) error {
	var lines eventLines
	for {
		size, err := h.r.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(strings.TrimSpace(string(size)), 16, 31)
		if err != nil || n == 0 {
			return fmt.Errorf("the events have ended: %q, %w", size, io.EOF)
		}
		for left := int(n); left > 0; {
			if _, err := h.r.Peek(1); err != nil {
				return err
			}
			b, _ := h.r.Peek(min(left, h.r.Buffered()))
			lines.feed(b, data)
			left -= len(b)
			_, _ = h.r.Discard(len(b)) // it is there
		}
		if _, err := h.r.Discard(2); err != nil {
			return err
		}
	}
}

// post posts an envelope.
func (h *http1) post(body []byte) (status int, answer []byte, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended {
		return 0, nil, net.ErrClosed
	}
	if h.up == nil {
		if h.up, err = net.DialTimeout("tcp", h.addr, Patience); err != nil {
			return 0, nil, err
		}
		h.in = bufio.NewReaderSize(h.up, 2<<10)
	}
	h.out = append(append(h.out[:0], "POST /a2a HTTP/1.1\r\nHost: "...), h.addr...)
	h.out = append(append(h.out, "\r\nContent-Type: application/json\r\nAuthorization: Bearer "...), h.token...)
	h.out = strconv.AppendInt(append(h.out, "\r\nContent-Length: "...), int64(len(body)), 10)
	h.out = append(append(h.out, "\r\n\r\n"...), body...)
	if _, err := h.up.Write(h.out); err != nil {
		return 0, nil, err
	}
	status, n, err := answerHead(h.in)
	if err == nil && n > 0 {
		answer = make([]byte, n)
		_, err = io.ReadFull(h.in, answer)
	}
	return status, answer, err
}

// Close ends both connections, which ends a post.
func (h *http1) Close() error {
	err := h.down.Close()
	if h.mu.TryLock() { // else a post is under way, which is answered
		defer h.mu.Unlock()
		if h.ended = true; h.up != nil {
			return h.up.Close()
		}
	}
	return err
}
