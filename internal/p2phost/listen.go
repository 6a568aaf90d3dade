package p2phost

import (
	"errors"
	"net"
	"net/netip"
	"strings"

	ma "github.com/multiformats/go-multiaddr"
)

// ListenAt returns where a host is to listen, as a multiaddress of TCP. The address is HOST:PORT, whose host is an IP
// address, localhost or nothing, or such a multiaddress, which may end with /ws, as WebSocket shares the port.
func ListenAt(address string) (ma.Multiaddr, error) {
	at, err := HostPort(address)
	if err != nil {
		return nil, err
	}
	to, err := netip.ParseAddrPort(at)
	if err != nil {
		return nil, errNoPlace
	}
	_, port, _ := net.SplitHostPort(at)
	kind := "/ip4/"
	if to.Addr().Is6() {
		kind = "/ip6/"
	}
	return ma.NewMultiaddr(kind + to.Addr().String() + "/tcp/" + port)
}

// HostPort returns where a host is to listen, as [ListenAt] takes it, as HOST:PORT with an IP address.
func HostPort(address string) (string, error) {
	if !strings.HasPrefix(address, "/") {
		host, port, err := net.SplitHostPort(address)
		if err != nil {
			return "", err
		}
		switch host {
		case "":
			host = "0.0.0.0"
		case "localhost":
			host = "127.0.0.1"
		}
		if _, err := netip.ParseAddr(host); err != nil {
			return "", errNoPlace
		}
		return net.JoinHostPort(host, port), nil
	}
	a, err := ma.NewMultiaddr(strings.TrimSuffix(strings.TrimSuffix(address, "/"), "/ws"))
	if err != nil {
		return "", err
	}
	if len(a) != 2 || a[1].Protocol().Code != ma.P_TCP || a[0].Protocol().Code != ma.P_IP4 && a[0].Protocol().Code != ma.P_IP6 {
		return "", errNoPlace
	}
	return net.JoinHostPort(a[0].Value(), a[1].Value()), nil
}

var errNoPlace = errors.New("want HOST:PORT with an IP address, or a multiaddress such as /ip4/127.0.0.1/tcp/4001")
