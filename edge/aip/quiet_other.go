//go:build !unix

package aip

import "net"

// QuietConn is a connection as any, where none can be asked whether there is something to read.
type QuietConn struct{ net.Conn }

// NewQuietConn returns a QuietConn that is another connection, which is its own from now on.
func NewQuietConn(c net.Conn) *QuietConn { return &QuietConn{c} }
