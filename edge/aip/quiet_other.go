//go:build !unix

package aip

import "net"

// QuietConn is a connection as any, where none can be asked whether there is something to read.
type QuietConn struct {
	net.Conn
	counter Counter
}

// NewQuietConn returns a QuietConn that is another connection, which is its own from now on. counter is told what comes
// over it; nobody is if nil.
func NewQuietConn(c net.Conn, counter Counter) *QuietConn { return &QuietConn{c, counter} }
