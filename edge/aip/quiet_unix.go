//go:build unix

package aip

import (
	"io"
	"net"
	"syscall"

	"google.golang.org/grpc/mem"
)

// QuietConn is a connection that gRPC reads without holding a buffer while nothing comes. With a connection of the net
// package gRPC does so by itself, and with no other: this is for who has a type of its own, which embeds it. A
// connection that is not plain TCP is read as any. One goroutine reads.
type QuietConn struct {
	net.Conn
	counter Counter
	raw     syscall.RawConn // nil where the connection can't be asked whether there is something to read
	try     func(fd uintptr) bool

	// Of the read that is under way.
	size int
	pool mem.BufferPool
	buf  *[]byte
	n    int
	err  error
}

// NewQuietConn returns a QuietConn that is another connection, which is its own from now on. counter is told what comes
// over it; nobody is if nil.
func NewQuietConn(c net.Conn, counter Counter) *QuietConn {
	q := &QuietConn{Conn: c, counter: counter}
	if tcp, is := c.(*net.TCPConn); is {
		q.raw, _ = tcp.SyscallConn() // of one that is closed there is none
	}
	q.try = q.tryRead // once: a method value is allocated
	return q
}

// ReadOnReady is what gRPC reads by, where a connection has it: it waits until something comes, and takes a buffer of
// the pool only then.
func (q *QuietConn) ReadOnReady(size int, pool mem.BufferPool) (*[]byte, int, error) {
	q.size, q.pool = size, pool
	if q.raw == nil {
		q.take(q.Conn.Read)
	} else if err := q.raw.Read(q.try); err != nil && q.err == nil {
		q.err = err
	}
	buf, n, err := q.buf, q.n, q.err
	q.count(n)
	q.pool, q.buf, q.n, q.err = nil, nil, 0, nil
	return buf, n, err
}

// tryRead reads what is there; false where nothing is.
func (q *QuietConn) tryRead(fd uintptr) (done bool) {
	q.take(func(b []byte) (int, error) {
		for {
			if n, err := syscall.Read(int(fd), b); err != syscall.EINTR {
				return n, err
			}
		}
	})
	return q.err != syscall.EAGAIN
}

// take reads into a buffer of the pool, which goes back where nothing was read.
func (q *QuietConn) take(read func([]byte) (int, error)) {
	q.buf = q.pool.Get(q.size)
	q.n, q.err = read(*q.buf)
	if q.n == 0 && q.err == nil {
		q.err = io.EOF
	}
	if q.n <= 0 {
		q.pool.Put(q.buf)
		q.buf, q.n = nil, 0
	}
}
