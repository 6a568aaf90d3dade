// Package origin decides which requests of web pages a listener answers: by Origin, Host and what browsers say of the
// page that sends one. Every listener of edges and sidecars asks it before it reads anything else.
package origin

import (
	"net/http"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// Policy says which web pages may speak to a listener. Programs send none of the headers that it goes by: credentials
// tell them apart. The zero value lets in pages of the host that is asked.
type Policy struct {
	Listed   []string // origins besides those of the host that is asked: "https://app.example.com", or "*" for all
	Loopback bool     // for development: pages of this machine may, and a host's name that is not this machine's needs to be listed
	Closed   bool     // no page may, whatever its origin
}

// Check returns FORBIDDEN for what is, or may be, sent by a page that may not speak to the listener:
//   - an Origin that is neither listed nor of the host that is asked;
//   - without an Origin, a Host that a page's owner could let point at this machine, where credentials may be missing (Loopback);
//   - without an Origin, a Sec-Fetch-Site other than same-origin and none, as browsers send with images, scripts, forms and links.
//
// It returns INVALID_REQUEST where one of the headers stands twice. It reads headers alone, and may be called before anything is answered.
func (p Policy) Check(r *http.Request) error {
	return p.check(r.Host, r.Header["Origin"], r.Header["Sec-Fetch-Site"])
}

// CheckMetadata is [Policy.Check] for a call of gRPC, whose metadata has names in lower case.
func (p Policy) CheckMetadata(metadata map[string][]string) error {
	host := ""
	if names := metadata[":authority"]; len(names) > 0 {
		host = names[0]
	}
	return p.check(host, metadata["origin"], metadata["sec-fetch-site"])
}

func (p Policy) check(host string, origin, site []string) error {
	switch {
	case len(origin) > 1:
		return agora.Errorf(agora.InvalidRequest, "header Origin stands twice")
	case len(site) > 1:
		return agora.Errorf(agora.InvalidRequest, "header Sec-Fetch-Site stands twice")
	case len(origin) == 1 && origin[0] != "":
		if !p.allows(origin[0], host) {
			return agora.Errorf(agora.Forbidden, "this origin is not allowed")
		}
	case !p.allowsHost(host):
		return agora.Errorf(agora.Forbidden, "ask for an address, localhost or a name without dots, or list the origin of this name")
	case len(site) == 1 && site[0] != sameOrigin && site[0] != byUser:
		return agora.Errorf(agora.Forbidden, "a page of another site has sent this, and says no origin that is allowed")
	}
	return nil
}

// CheckChange is [Policy.Check] for a request that changes something by GET or HEAD. Pages have browsers send those
// without an Origin, and over plain HTTP browsers do not say whose page it was: so a browser's request needs an allowed
// Origin, a token in its header, a Sec-Fetch-Site of the page's own host, or a Referer whose origin is allowed.
// FORBIDDEN without, and where the browser is to show the answer.
func (p Policy) CheckChange(r *http.Request) error {
	if err := p.Check(r); err != nil {
		return err
	}
	if r.Method != http.MethodGet && r.Method != http.MethodHead || r.Header.Get("Origin") != "" || !ofBrowser(r.Header) || hasToken(r.Header) {
		return nil
	}
	if r.Header.Get("Sec-Fetch-Site") != "" {
		if embeds(r.Header) {
			return agora.Errorf(agora.Forbidden, "this path is for scripts: a browser may not open it as a page, an image or the like")
		}
		return nil
	}
	if referer := r.Header["Referer"]; len(referer) == 1 && p.allows(originOf(referer[0]), r.Host) {
		return nil
	}
	return agora.Errorf(agora.Forbidden,
		"a browser's request to this path must say which page it is of: by Origin, Sec-Fetch-Site or Referer, or it presents a token in its header")
}

// What browsers say in Sec-Fetch-Site of requests that no other site's page has sent.
const (
	sameOrigin = "same-origin"
	byUser     = "none"
)

// ofBrowser reports whether a browser may have sent a request. No page can have it leave out what it calls itself.
// Programs in Node send Sec-Fetch-Mode: cors, and nothing else of the kind.
func ofBrowser(h http.Header) bool {
	mode := h["Sec-Fetch-Mode"]
	return len(h["Referer"]) > 0 || len(h["Sec-Fetch-Site"]) > 0 || len(h["Sec-Fetch-Dest"]) > 0 || len(h["Sec-Fetch-User"]) > 0 ||
		len(mode) > 0 && (len(mode) > 1 || mode[0] != "cors") ||
		slices.ContainsFunc(h["User-Agent"], func(agent string) bool { return strings.HasPrefix(agent, "Mozilla/") })
}

// hasToken reports whether a request has a token in its header: pages of others can't set it unless they were allowed
// to.
func hasToken(h http.Header) bool {
	scheme, _, _ := strings.Cut(h.Get("Authorization"), " ")
	return strings.EqualFold(scheme, "Bearer")
}

// embeds reports whether a browser shows the answer to a request as a page, or as part of one, and no script reads it.
func embeds(h http.Header) bool {
	mode, dest := h.Get("Sec-Fetch-Mode"), h.Get("Sec-Fetch-Dest")
	return mode == "navigate" || mode == "no-cors" || dest != "" && dest != "empty" && dest != "websocket"
}

// allows reports whether a page of an origin may ask a host, both as headers name them.
func (p Policy) allows(origin, host string) bool {
	if p.Closed {
		return false
	}
	if slices.Contains(p.Listed, "*") {
		return true
	}
	from, ok := parse(origin)
	if !ok {
		return false
	}
	if slices.ContainsFunc(p.Listed, from.is) {
		return true
	}
	if !p.Loopback {
		return from.isOf(host)
	}
	// Without credentials a page of any name that its owner lets point at this
	// machine would be of the same host: only names that nobody can do that with count.
	return isLoopback(from.host) || isAddress(from.host) && from.isOf(host)
}

// allowsHost reports whether a request without an Origin may ask for a host: browsers send none with what a page reads
// of its own host. Without credentials the name must be one that no owner of a page can let point at this machine.
func (p Policy) allowsHost(host string) bool {
	if !p.Loopback || host == "" || slices.Contains(p.Listed, "*") {
		return true
	}
	name, _, ok := split(host)
	if !ok {
		return false
	}
	return !strings.Contains(name, ".") || isAddress(name) ||
		slices.ContainsFunc(reserved, func(zone string) bool { return strings.HasSuffix(name, zone) }) ||
		slices.ContainsFunc(p.Listed, func(l string) bool {
			listed, ok := parse(l)
			return ok && listed.isOf(host)
		})
}

// reserved are zones whose names nobody can register. Any machine of a network may claim one of .local, so that is none
// of them.
var reserved = []string{".localhost", ".internal", ".test"}
