package edge

import (
	"net/netip"
	"slices"
	"strings"
	"sync/atomic"
)

// Proxies are the balancers whose word about where a connection comes from is
// taken. The zero value trusts nobody. They may change at any time.
type Proxies struct {
	trusted atomic.Pointer[[]netip.Prefix]
}

// Set says who is trusted from now on.
func (p *Proxies) Set(trusted []netip.Prefix) { p.trusted.Store(&trusted) }

// Trust reports whether an address is a trusted proxy's.
func (p *Proxies) Trust(a netip.Addr) bool {
	all := p.trusted.Load()
	a = a.Unmap().WithZone("")
	return all != nil && slices.ContainsFunc(*all, func(in netip.Prefix) bool { return in.Contains(a) })
}

// Client returns where a request comes from: remote is the peer of the socket
// (host and port), forwarded the values of X-Forwarded-For in their order. Read from its
// end, the first address that is not a trusted proxy's is the client's; what stands
// before it is what the client says of itself, and is not looked at. A peer that is not trusted is the client itself.
func (p *Proxies) Client(remote string, forwarded []string) netip.Addr {
	return p.ClientBehind(address(remote), forwarded)
}

// ClientBehind is Client where the peer's address is read already.
func (p *Proxies) ClientBehind(at netip.Addr, forwarded []string) netip.Addr {
	at = at.Unmap().WithZone("")
	if !p.Trust(at) {
		return at
	}
	for _, value := range slices.Backward(forwarded) {
		for {
			i := strings.LastIndexByte(value, ',')
			hop := address(strings.TrimSpace(value[i+1:]))
			if !hop.IsValid() {
				return at // the last one that a trusted proxy is known to have written
			}
			if at = hop; !p.Trust(at) {
				return at
			}
			if i < 0 {
				break
			}
			value = value[:i]
		}
	}
	return at
}

// address reads an address, with or without a port; an invalid one where there is none.
func address(text string) netip.Addr {
	if at, err := netip.ParseAddrPort(text); err == nil {
		return at.Addr().Unmap().WithZone("")
	}
	at, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(text, "["), "]"))
	if err != nil {
		return netip.Addr{}
	}
	return at.Unmap().WithZone("")
}
