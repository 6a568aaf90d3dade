package dial

import (
	"fmt"
	"net/netip"
	"strings"
)

// LinkLocal is what [Dialer] denies that is given no list: addresses of one link, where clouds have the metadata of
// their machines.
var LinkLocal = []string{"169.254.0.0/16", "fe80::/10"}

// Inside is what a server that is reached by many should deny besides: the machine itself, and the metadata of clouds
// that is at other addresses.
var Inside = []string{
	"127.0.0.0/8", "::1/128", "100.100.100.200/32", "168.63.129.16/32", "192.0.0.192/32", "fd00:ec2::254/128", "fd20:ce::254/128",
	"localhost", "*.localhost", "metadata.google.internal",
}

// List is networks and hosts. The zero value is empty.
type List struct {
	networks []netip.Prefix
	hosts    []string // names, or the ends of names behind a '*'
}

// ParseList reads entries, each a network (10.0.0.0/8), an address, the name of a host, or *.example.org for all names
// that end so.
func ParseList(entries []string) (List, error) {
	var l List
	for _, entry := range entries {
		if err := l.add(strings.TrimSpace(entry)); err != nil {
			return List{}, err
		}
	}
	return l, nil
}

func (l *List) add(entry string) error {
	if a, err := netip.ParseAddr(entry); err == nil && a.Zone() == "" {
		a = a.Unmap()
		l.networks = append(l.networks, netip.PrefixFrom(a, a.BitLen()))
		return nil
	}
	if p, err := netip.ParsePrefix(entry); err == nil {
		if p.Addr().Is4In6() {
			return fmt.Errorf("write %q as a network of IPv4", entry)
		}
		l.networks = append(l.networks, p.Masked())
		return nil
	}
	host := strings.TrimSuffix(strings.ToLower(entry), ".")
	end, wild := strings.CutPrefix(host, "*.")
	if inName(end) != "" {
		return fmt.Errorf("%q is no network such as 10.0.0.0/8, no address, no host, and no *.example.org", entry)
	}
	if wild {
		host = host[1:]
		l.hosts = append(l.hosts, "*"+host)
		return nil
	}
	l.hosts = append(l.hosts, host)
	return nil
}

// hasHost reports whether a host's name, in its one spelling, is on the list.
func (l *List) hasHost(host string) bool {
	for _, h := range l.hosts {
		end, wild := strings.CutPrefix(h, "*")
		if h == host || wild && strings.HasSuffix(host, end) {
			return true
		}
	}
	return false
}

// has reports whether an address, without a zone, is on the list.
func (l *List) has(a netip.Addr) bool {
	for _, p := range l.networks {
		if p.Contains(a) {
			return true
		}
	}
	return false
}

// nobody is what is no address of one host: on some systems it stands for the machine itself.
var nobody = []netip.Prefix{
	netip.MustParsePrefix("0.0.0.0/8"), netip.MustParsePrefix("224.0.0.0/4"), netip.MustParsePrefix("255.255.255.255/32"),
	netip.MustParsePrefix("::/128"), netip.MustParsePrefix("ff00::/8"),
}
