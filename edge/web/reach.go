package web

import (
	"context"
	"net"
	"syscall"
)

// connKey is the key of a request's connection in its context.
type connKey struct{}

// WithConn returns ctx with the connection that a request has come by: it is for the ConnContext of a server. [ConnOf]
// finds it.
func WithConn(ctx context.Context, c net.Conn) context.Context {
	return context.WithValue(ctx, connKey{}, c)
}

// ConnOf returns the connection of [WithConn]; nil where there is none.
func ConnOf(ctx context.Context) net.Conn {
	c, _ := ctx.Value(connKey{}).(net.Conn)
	return c
}

// Reach tells what the system at the other end of a connection has acknowledged. The zero value knows nothing.
type Reach struct{ raw syscall.RawConn }

// Reach returns that of the connection that the request has come by.
func (x *Exchange) Reach() Reach { return reachOf(ConnOf(x.Request.Context())) }

func reachOf(c net.Conn) Reach {
	for c != nil {
		switch t := c.(type) {
		case interface{ TCPConn() (*net.TCPConn, bool) }: // behind a PROXY header
			tcp, ok := t.TCPConn()
			if !ok {
				return Reach{}
			}
			c = tcp
		case interface{ NetConn() net.Conn }: // below TLS
			c = t.NetConn()
		case syscall.Conn:
			raw, err := t.SyscallConn()
			if err != nil {
				return Reach{}
			}
			return Reach{raw}
		default:
			return Reach{}
		}
	}
	return Reach{}
}
