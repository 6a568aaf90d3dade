package aip

import (
	"context"
	"crypto/tls"
	"net"

	"google.golang.org/grpc/credentials"
)

// nodeTLS speaks TLS with nodes as it is set up at the time of each handshake: certificates are replaced while the edge
// runs.
type nodeTLS struct {
	credentials.TransportCredentials
	now func() *tls.Config
}

func newNodeTLS(now func() *tls.Config) credentials.TransportCredentials {
	return nodeTLS{credentials.NewTLS(now()), now}
}

// ClientHandshake implements credentials.TransportCredentials.
func (t nodeTLS) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return credentials.NewTLS(t.now()).ClientHandshake(ctx, authority, conn)
}

// Clone implements credentials.TransportCredentials.
func (t nodeTLS) Clone() credentials.TransportCredentials { return newNodeTLS(t.now) }
