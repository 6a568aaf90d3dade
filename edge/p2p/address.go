package p2p

import (
	"errors"

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

// ListenAt returns where a host listens: HOST:PORT, without a host at all addresses of the machine, or a multiaddress
// of TCP.
func ListenAt(address string) ([]ma.Multiaddr, error) {
	a, err := p2phost.ListenAt(address)
	if err != nil {
		return nil, err
	}
	return []ma.Multiaddr{a}, nil
}

// HostPort returns such an address as HOST:PORT.
func HostPort(address string) (string, error) { return p2phost.HostPort(address) }

// NewKey makes a key for a host.
func NewKey() (crypto.PrivKey, error) { return p2phost.NewKey() }

// KeyIn returns the key that a file holds. A file that is not there is made, for its owner's eyes alone.
func KeyIn(path string) (crypto.PrivKey, error) { return p2phost.KeyIn(path) }
