package wire

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/textproto"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// http1 is an agent's connections over HTTP/1.1.
type http1 struct {
	addr, token string
	down        *socket.Timed
	r           *bufio.Reader
	up          atomic.Pointer[socket.Timed] // nil until something is posted

	mu    sync.Mutex // guards the fields below; held while something is posted
	in    *bufio.Reader
	out   []byte
	ended bool
}

// dialHTTP1 connects, and asks for events at a path.
func dialHTTP1(ctx context.Context, addr, token, path string) (*http1, error) {
	down, err := connect(ctx, addr)
	if err != nil {
		return nil, err
	}
	h := &http1{addr: addr, token: token, down: down, r: bufio.NewReaderSize(down, readBuffer)}
	return h, greeted(down, func() error { return h.ask(path) })
}

// ask asks for events.
func (h *http1) ask(path string) error {
	_, err := fmt.Fprintf(h.down, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, h.addr, h.token)
	if err != nil {
		return err
	}
	status, _, err := answerHead(h.r)
	if err == nil && status != 200 {
		err = fmt.Errorf("%s answered %d", path, status)
	}
	return err
}

// At implements uplink.
func (h *http1) At() int64 { return h.down.At() }

// SetWriteDeadline implements uplink.
func (h *http1) SetWriteDeadline(t time.Time) error {
	if up := h.up.Load(); up != nil {
		return up.SetDeadline(t)
	}
	return nil
}

// answerHead reads the status and the header of an answer, and returns the length of its body; -1 where it comes in
// chunks.
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
	up := h.up.Load()
	if up == nil {
		if up, err = connect(context.Background(), h.addr); err != nil {
			return 0, nil, err
		}
		h.up.Store(up)
		h.in = bufio.NewReaderSize(up, 2<<10)
	}
	h.out = append(append(h.out[:0], "POST /a2a HTTP/1.1\r\nHost: "...), h.addr...)
	h.out = append(append(h.out, "\r\nContent-Type: application/json\r\nAuthorization: Bearer "...), h.token...)
	h.out = strconv.AppendInt(append(h.out, "\r\nContent-Length: "...), int64(len(body)), 10)
	h.out = append(append(h.out, "\r\n\r\n"...), body...)
	if err := up.Send(h.out); err != nil {
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
		h.ended = true
		if up := h.up.Load(); up != nil {
			return up.Close()
		}
	}
	return err
}
