package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/internal/turns"
)

// serverSettings say how the listeners speak HTTP.
type serverSettings struct {
	origins    []string
	readHeader time.Duration
	maxHeader  size
	tls, admin tlsSettings

	trusted       []string // whose word is taken about where agents connect from
	proxyProtocol bool

	turns *turns.Turns // in which newcomers are let in and what they missed is read, by all edges of the process
}

// tlsSettings are the certificate of a listener, and whose clients' ones it believes.
type tlsSettings struct{ cert, key, clientCA string }

func (s *serverSettings) flags(f *pflag.FlagSet) {
	s.turns = new(turns.Turns)
	f.StringSliceVar(&s.origins, "server.origins", nil, "origins of web pages that may connect and ask, at every path, besides those of the same host")
	f.DurationVar(&s.readHeader, "server.read-header-timeout", 10*time.Second, "how long a handshake, and the header of a request, may take to come")
	s.maxHeader = 32 << 10
	f.Var(&s.maxHeader, "server.max-header", "size of the header of a request, tokens included")
	f.StringSliceVar(&s.trusted, "server.trusted-proxies", nil, "networks of balancers whose X-Forwarded-For and PROXY headers are taken, such as 10.0.0.0/8")
	f.BoolVar(&s.proxyProtocol, "server.proxy-protocol", false, "connections from trusted proxies begin with a PROXY protocol v2 header")
	s.tls.flags(f, "tls", "agents connect")
	s.admin.flags(f, "admin.tls", "admin-addr is")
}

func (t *tlsSettings) flags(f *pflag.FlagSet, prefix, where string) {
	f.StringVar(&t.cert, prefix+".cert", "", "file of the certificate where "+where+", and of those up to its CA; no TLS if empty; read again when it changes")
	f.StringVar(&t.key, prefix+".key", "", "file of the key of "+prefix+".cert")
	f.StringVar(&t.clientCA, prefix+".client-ca", "", "file of the CAs that sign certificates of clients")
}

func (s *serverSettings) faults() []error {
	_, err := s.proxies()
	return []error{
		err, unless(!s.proxyProtocol || len(s.trusted) > 0, "server.proxy-protocol needs server.trusted-proxies"),
		unless(s.readHeader > 0, "server.read-header-timeout must be more than nothing"),
		unless(s.maxHeader >= 4<<10 && s.maxHeader <= 1<<20, "server.max-header must be 4KiB to 1MiB"),
		s.tls.faults("tls"), s.admin.faults("admin.tls"),
	}
}

func (t *tlsSettings) faults(prefix string) error {
	return errors.Join(
		unless((t.cert == "") == (t.key == ""), prefix+".cert and "+prefix+".key go together"),
		unless(t.clientCA == "" || t.cert != "", prefix+".client-ca needs "+prefix+".cert"),
	)
}

// open reads the files, for a listener that speaks these protocols, the best first; nil where there is to be no TLS.
func (t *tlsSettings) open(protos []string) (*certs.Files, error) {
	if t.cert == "" {
		return nil, nil
	}
	return certs.Listener(t.cert, t.key, t.clientCA, protos)
}

// proxies returns the networks that are trusted.
func (s *serverSettings) proxies() ([]netip.Prefix, error) {
	var all []netip.Prefix
	for _, text := range s.trusted {
		text = strings.TrimSpace(text)
		if a, err := netip.ParseAddr(text); err == nil {
			text = netip.PrefixFrom(a, a.BitLen()).String()
		}
		p, err := netip.ParsePrefix(text)
		if err != nil {
			return nil, fmt.Errorf("server.trusted-proxies: %q is no network, such as 10.0.0.0/8", text)
		}
		if p.Addr().Is4In6() {
			return nil, fmt.Errorf("server.trusted-proxies: write %q as a network of IPv4", text)
		}
		all = append(all, p.Masked())
	}
	return all, nil
}

// checkFiles returns what is wrong with the files that are named.
func (s *serverSettings) checkFiles() error {
	_, public := s.tls.open(nil)
	_, admin := s.admin.open(nil)
	return errors.Join(public, admin)
}
