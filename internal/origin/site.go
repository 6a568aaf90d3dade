package origin

import (
	"net/netip"
	"strconv"
	"strings"
)

// site is an origin in its one spelling: letters are small, no dot ends the name, an address is as netip writes it, and
// a port is there where the scheme has a default.
type site struct{ scheme, host, port string }

// parse reads an origin: a scheme and a host, with a port or without. A slash may end it, as lists and some libraries
// write it.
func parse(origin string) (s site, ok bool) {
	scheme, rest, ok := strings.Cut(origin, "://")
	if !ok || scheme == "" {
		return site{}, false
	}
	s.scheme = strings.ToLower(scheme)
	if s.host, s.port, ok = split(strings.TrimSuffix(rest, "/")); s.port == "" {
		s.port = defaultPort(s.scheme)
	}
	return s, ok
}

// originOf returns the origin that a URL begins with; the whole text where it is none.
func originOf(url string) string {
	scheme, rest, ok := strings.Cut(url, "://")
	if !ok {
		return url
	}
	if end := strings.IndexAny(rest, "/?#"); end >= 0 {
		rest = rest[:end]
	}
	return scheme + "://" + rest
}

func defaultPort(scheme string) string {
	switch scheme {
	case "http", "ws":
		return "80"
	case "https", "wss":
		return "443"
	}
	return ""
}

// is reports whether a listed origin is s, in whatever spelling.
func (s site) is(listed string) bool {
	l, ok := parse(listed)
	return ok && l == s
}

// isOf reports whether a page of s is of a host, as a header names it. What stands before the listener may have ended
// TLS, so the scheme by which the host was asked is unknown: a host without a port has the default port of the page's
// scheme.
func (s site) isOf(host string) bool {
	name, port, ok := split(host)
	if port == "" {
		port = defaultPort(s.scheme)
	}
	return ok && name == s.host && port == s.port
}

// split takes a host with a port or without apart.
func split(host string) (name, port string, ok bool) {
	rest := ""
	if strings.HasPrefix(host, "[") {
		if name, rest, ok = strings.Cut(host[1:], "]"); !ok || !strings.Contains(name, ":") || !isAddress(name) {
			return "", "", false
		}
	} else if end := strings.IndexByte(host, ':'); end >= 0 {
		name, rest = host[:end], host[end:]
	} else {
		name = host
	}
	if name = strings.ToLower(strings.TrimSuffix(name, ".")); name == "" || strings.ContainsFunc(name, strange) && !strings.HasPrefix(host, "[") {
		return "", "", false
	}
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.String()
	}
	port, ok = portOf(rest)
	return name, port, ok
}

// portOf returns the port of what follows a host's name; empty where none is said.
func portOf(rest string) (string, bool) {
	if rest == "" || rest == ":" {
		return "", true
	}
	n, err := strconv.ParseUint(strings.TrimPrefix(rest, ":"), 10, 16)
	return strconv.FormatUint(n, 10), err == nil && rest[0] == ':'
}

// strange reports whether no name of a host has a character.
func strange(r rune) bool {
	return r <= ' ' || r == 0x7f || strings.ContainsRune(`"#%/:<>?@[\]^|{}`+"`", r)
}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && ip.IsLoopback()
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
