package p2p

import (
	"errors"
	"net"
	"net/netip"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora/internal/p2phost"
)

// ParseAddress returns the multiaddress that a text is, which ends with no peer id.
func ParseAddress(text string) (ma.Multiaddr, error) {
	a, err := ma.NewMultiaddr(text)
	if err != nil {
		return nil, err
	}
	if at, id := peer.SplitAddr(a); id != "" || at == nil {
		return nil, errors.New("the peer id is not to be part of the address")
	}
	return a, nil
}

// ParsePeer returns the peer id that a text is.
func ParsePeer(text string) (peer.ID, error) { return peer.Decode(text) }

// ListenAt returns where a host listens at HOST:PORT: without a host at all addresses of the machine.
func ListenAt(address string) ([]ma.Multiaddr, error) {
	host, port, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if host == "" {
		host = "0.0.0.0"
	}
	if host == "localhost" {
		host = "127.0.0.1"
	}
	ip, err := netip.ParseAddr(host)
	if err != nil {
		return nil, errors.New("the host must be an IP address, or nothing")
	}
	kind := "/ip4/"
	if ip.Is6() {
		kind = "/ip6/"
	}
	a, err := ma.NewMultiaddr(kind + ip.String() + "/tcp/" + port)
	if err != nil {
		return nil, err
	}
	return []ma.Multiaddr{a}, nil
}

// NewKey makes a key for a host.
func NewKey() (crypto.PrivKey, error) { return p2phost.NewKey() }

// KeyIn returns the key that a file holds. A file that is not there is made, for its owner's eyes alone.
func KeyIn(path string) (crypto.PrivKey, error) { return p2phost.KeyIn(path) }
