package faultnet

import (
	"context"
	"net"
)

// From returns a link that is well, whose connections come from elsewhere than the system.
func From(dial func(ctx context.Context) (net.Conn, error)) *Link {
	l := New()
	l.dial = dial
	return l
}
