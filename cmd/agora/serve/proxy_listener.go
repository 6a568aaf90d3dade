package serve

import (
	"errors"
	"net"
	"net/netip"

	"github.com/pires/go-proxyproto"

	"github.com/agora-relay/agora/edge"
)

// proxyListener takes connections for l: those of trusted proxies must begin
// with a PROXY protocol v2 header, which says where they come from. To others a
// header is no help: it is a bad request.
func proxyListener(l net.Listener, trusted *edge.Proxies) net.Listener {
	return proxyListenerOf(l, trusted, proxyproto.REQUIRE)
}

// peerListener is proxyListener for peers of libp2p, among whom the cluster's edges are: their network may be a trusted
// one, and they write no header.
func peerListener(l net.Listener, trusted *edge.Proxies) net.Listener {
	return proxyListenerOf(l, trusted, proxyproto.USE)
}

func proxyListenerOf(l net.Listener, trusted *edge.Proxies, fromProxies proxyproto.Policy) net.Listener {
	return unproxied{&proxyproto.Listener{
		Listener: l,
		ConnPolicy: func(o proxyproto.ConnPolicyOptions) (proxyproto.Policy, error) {
			at, err := netip.ParseAddrPort(o.Upstream.String())
			if err == nil && trusted.Trust(at.Addr()) {
				return fromProxies, nil
			}
			return proxyproto.SKIP, nil
		},
		ValidateHeader: func(h *proxyproto.Header) error {
			if h.Version != 2 {
				return errors.New("want version 2 of the PROXY protocol")
			}
			return nil
		},
	}}
}

// unproxied has connections keep what the door needs of a socket.
type unproxied struct{ net.Listener }

// Accept returns the next connection. The header is read with its first bytes, not here.
func (u unproxied) Accept() (net.Conn, error) {
	c, err := u.Listener.Accept()
	if p, ok := c.(*proxyproto.Conn); ok {
		return proxied{p}, err
	}
	return c, err
}

// proxied is a connection that came by a trusted proxy.
type proxied struct{ *proxyproto.Conn }

// PeerAddr returns the address of the proxy, without waiting for its header as RemoteAddr does.
func (p proxied) PeerAddr() net.Addr { return p.Raw().RemoteAddr() }

// SetLinger says what becomes of what is not sent when the socket is closed.
func (p proxied) SetLinger(sec int) error {
	if tcp, ok := p.TCPConn(); ok {
		return tcp.SetLinger(sec)
	}
	return nil
}

// CloseWrite ends what is sent.
func (p proxied) CloseWrite() error {
	if tcp, ok := p.TCPConn(); ok {
		return tcp.CloseWrite()
	}
	return nil
}
