// Package wire has the client side of the protocols that are compared, as bare
// as each of them allows, so that what is measured are the servers. They are
// alike: whatever is sent is one write, and reads go through a buffer of one size.
package wire

import (
	"bytes"
	"context"
	"net"
	"net/url"
	"time"

	"github.com/agora-relay/agora/internal/loadgen"
	"github.com/agora-relay/agora/internal/loadgen/socket"
)

// readBuffer is the size of every client's buffer for reading.
const readBuffer = socket.Buffer

// Patience is how long a server may take to answer a connection's first words.
const Patience = 30 * time.Second

// upgrade connects to addr and asks for a WebSocket at a path, with a token if any.
func upgrade(ctx context.Context, addr, path, token string) (*socket.Conn, error) {
	u, err := url.Parse("ws://" + addr + path)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, Patience)
	defer cancel()
	return socket.Dial(ctx, socket.Target{URL: u, Token: token})
}

// connect connects to addr.
func connect(ctx context.Context, addr string) (*socket.Timed, error) {
	d := net.Dialer{Timeout: Patience}
	nc, err := d.DialContext(ctx, "tcp", addr)
	if err != nil {
		return nil, err
	}
	return &socket.Timed{Conn: nc}, nil
}

// greeted calls what says a connection's first words, which are to be answered in time, and closes it where they are
// not.
func greeted(nc net.Conn, greet func() error) error {
	_ = nc.SetDeadline(time.Now().Add(Patience)) // a connection that is closed fails in what follows
	if err := greet(); err != nil {
		_ = nc.Close() // the error says more
		return err
	}
	return nc.SetDeadline(time.Time{})
}

// cut returns what stands between key and the next quote; texts have none in them.
func cut(frame []byte, key string) ([]byte, bool) {
	_, rest, ok := bytes.Cut(frame, []byte(key))
	if !ok {
		return nil, false
	}
	text, _, ok := bytes.Cut(rest, []byte{'"'})
	return text, ok
}

// number reads the digits that b begins with.
func number(b []byte) (n uint64) {
	for _, c := range b {
		if c < '0' || c > '9' {
			break
		}
		n = n*10 + uint64(c-'0')
	}
	return n
}

// arrived hands on the stamp of what has arrived.
func arrived(r loadgen.Receiver, text []byte, at int64) {
	if s, ok := loadgen.Find(text); ok {
		r.Arrived(s, at)
	}
}

// fault hands on what a server complains of.
func fault(r loadgen.Receiver, what []byte) {
	r.Refused(loadgen.Refusal{Code: "fault", Message: string(what)})
}
