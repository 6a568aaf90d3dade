package origin

import (
	"net/http"
	"net/netip"
	"net/url"
	"strconv"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

// said is a host, its name and its port as net/url reads them; ok where that reads one.
func said(host, scheme string) (name, port string, ok bool) {
	u, err := url.Parse("//" + host)
	if err != nil || u.Hostname() == "" || u.User != nil || u.Path != "" || u.RawQuery != "" || u.Fragment != "" {
		return "", "", false
	}
	name, port = strings.ToLower(strings.TrimSuffix(u.Hostname(), ".")), u.Port()
	if ip, err := netip.ParseAddr(name); err == nil {
		name = ip.String()
	}
	if port == "" {
		port = defaultPort(scheme)
	}
	if n, err := strconv.ParseUint(port, 10, 16); err == nil {
		port = strconv.FormatUint(n, 10)
	}
	return name, port, true
}

// FuzzOrigin holds that a page is of the host that is asked only where net/url reads the same name and port in both,
// that an origin is of itself, and that every refusal is an error for agents.
func FuzzOrigin(f *testing.F) {
	for _, s := range [][2]string{
		{"https://h.example", "h.example:443"}, {"http://H.example.", "h.example"}, {"http://[::1]:80", "[0::1]"}, {"null", "null"}, {"http://a@h", "h"}, {"http://h/", "h"},
		{"http://h#@e", "e"}, {"http://h:080", "h:80"}, {"ws://h", "h:80"}, {"capacitor://localhost", "localhost"}, {"://", ""}, {"http://h\\@e", "h"}, {"http://[::1%25a]", "[::1%25a]"}, {"http://%68", "h"},
	} {
		f.Add(s[0], s[1])
	}
	f.Fuzz(func(t *testing.T, origin, host string) {
		r := &http.Request{Method: "GET", Host: host, Header: http.Header{"Origin": {origin}}}
		err := Policy{}.Check(r)
		if e, ok := err.(*agora.Error); err != nil && (!ok || e.Code != agora.Forbidden) {
			t.Fatalf("refused with %v", err)
		}
		scheme, rest, _ := strings.Cut(origin, "://")
		if err == nil && origin != "" {
			a, p, readable := said(strings.TrimSuffix(rest, "/"), strings.ToLower(scheme))
			b, q, ok := said(host, strings.ToLower(scheme))
			if readable && ok && (a != b || p != q) {
				t.Fatalf("a page of %q is of the host %q: %s %s, %s %s", origin, host, a, p, b, q)
			}
			if !readable && !strings.Contains(rest, "%") { // which url reads as an escape
				t.Fatalf("%q is an origin, and net/url reads no host in it", origin)
			}
		}
		if s, ok := parse(origin); ok {
			if !s.is(origin) || !s.isOf(strings.TrimSuffix(rest, "/")) {
				t.Fatalf("%q is %+v, and not of itself", origin, s)
			}
		}
		for _, p := range []Policy{{Loopback: true}, {Closed: true}, {Listed: []string{host}}, {Loopback: true, Listed: []string{origin}}} {
			if (p.Check(r) == nil) && p.Closed && origin != "" {
				t.Fatalf("%q is let in where no page is", origin)
			}
			_ = p.CheckChange(&http.Request{Method: "GET", Host: host, Header: http.Header{"Referer": {origin}}})
		}
		dev := &http.Request{Method: "GET", Host: host, Header: http.Header{}}
		if (Policy{Loopback: true}).Check(dev) == nil {
			if name, _, ok := said(host, ""); ok && strings.HasSuffix(name, ".example") {
				t.Fatalf("in development %q is asked for", host)
			}
		}
	})
}
