package edge

import (
	"net/netip"
	"net/url"
	"slices"
	"strings"
)

// Origins are the web pages that may talk to an edge, whatever the door. Programs send no Origin: credentials tell them apart.
type Origins struct {
	Listed   []string // origins besides those of the host that is asked: "https://app.example.com", or "*" for all
	Loopback bool     // for development: pages of this machine may, and pages of a host's name that is not this machine's need to be listed
}

// Allows reports whether a page of an origin may ask a host, both as the request's headers name them. No origin at all may.
func (o Origins) Allows(origin, host string) bool {
	if origin == "" || slices.ContainsFunc(o.Listed, func(l string) bool { return l == "*" || strings.EqualFold(l, origin) }) {
		return true
	}
	u, err := url.Parse(origin)
	if err != nil || u.Host == "" {
		return false
	}
	if !o.Loopback {
		return strings.EqualFold(u.Host, host)
	}
	// Without credentials a page of any name that its owner lets point at this
	// machine would be of the same host: only names that nobody can do that with count.
	return isLoopback(u.Hostname()) || strings.EqualFold(u.Host, host) && isAddress(u.Hostname())
}

// AllowsHost reports whether a request without an Origin may ask for a host: browsers send none with what a page reads of its own
// host. Without credentials the name must be one that no owner of a page can let point at this machine.
func (o Origins) AllowsHost(host string) bool {
	if !o.Loopback {
		return true
	}
	u, err := url.Parse("//" + host)
	if err != nil {
		return false
	}
	name := strings.ToLower(strings.TrimSuffix(u.Hostname(), "."))
	return !strings.Contains(name, ".") || isAddress(name) || slices.ContainsFunc(unsold, func(zone string) bool { return strings.HasSuffix(name, zone) }) ||
		slices.ContainsFunc(o.Listed, func(l string) bool {
			listed, err := url.Parse(l)
			return l == "*" || err == nil && strings.EqualFold(listed.Host, host)
		})
}

// unsold are zones of names that nobody can register.
var unsold = []string{".localhost", ".local", ".internal", ".test"}

func isLoopback(host string) bool {
	ip, err := netip.ParseAddr(host)
	return strings.EqualFold(host, "localhost") || err == nil && ip.IsLoopback()
}

func isAddress(host string) bool {
	_, err := netip.ParseAddr(host)
	return err == nil
}
