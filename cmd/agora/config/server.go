package config

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/certs"
	"github.com/agora-relay/agora/internal/origin"
	"github.com/agora-relay/agora/internal/turns"
)

// Server say how the listeners speak HTTP.
type Server struct {
	origins    []string
	loopback   bool // for development, pages of this machine may connect
	ReadHeader time.Duration
	MaxHeader  size
	TLS, Admin TLS

	trusted       []string // whose word is taken about where agents connect from
	ProxyProtocol bool

	Turns *turns.Turns // in which newcomers are let in and what they missed is read, by all edges of the process
}

// Pages returns which web pages may speak to the listeners for agents.
func (s *Server) Pages() origin.Policy {
	return origin.Policy{Listed: s.origins, Loopback: s.loopback}
}

// AdminPages returns which web pages may speak to the listener for operators: none.
func (s *Server) AdminPages() origin.Policy {
	return origin.Policy{Loopback: s.loopback, Closed: true}
}

// TLS are the certificate of a listener, and whose clients' ones it believes.
type TLS struct{ Cert, Key, ClientCA string }

func (s *Server) flags(f *pflag.FlagSet) {
	s.Turns = new(turns.Turns)
	f.StringSliceVar(&s.origins, "server.origins", nil, "origins of web pages that may connect and ask, at every path, besides those of the same host")
	f.DurationVar(&s.ReadHeader, "server.read-header-timeout", 10*time.Second, "how long a handshake, and the header of a request, may take to come")
	s.MaxHeader = 32 << 10
	f.Var(&s.MaxHeader, "server.max-header", "size of the header of a request, tokens included")
	f.StringSliceVar(&s.trusted, "server.trusted-proxies", nil, "networks of balancers whose X-Forwarded-For and PROXY headers are taken, such as 10.0.0.0/8")
	f.BoolVar(&s.ProxyProtocol, "server.proxy-protocol", false, "connections from trusted proxies begin with a PROXY protocol v2 header")
	s.TLS.Flags(f, "tls", "agents connect")
	s.Admin.Flags(f, "admin.tls", "admin-addr is")
}

func (t *TLS) Flags(f *pflag.FlagSet, prefix, where string) {
	f.StringVar(&t.Cert, prefix+".cert", "", "file of the certificate where "+where+", and of those up to its CA; no TLS if empty; read again when it changes")
	f.StringVar(&t.Key, prefix+".key", "", "file of the key of "+prefix+".cert")
	f.StringVar(&t.ClientCA, prefix+".client-ca", "", "file of the CAs that sign certificates of clients")
}

func (s *Server) faults() []error {
	_, err := s.Proxies()
	return []error{
		err, unless(!s.ProxyProtocol || len(s.trusted) > 0, "server.proxy-protocol needs server.trusted-proxies"),
		unless(s.ReadHeader > 0, "server.read-header-timeout must be more than nothing"),
		unless(s.MaxHeader >= 4<<10 && s.MaxHeader <= 1<<20, "server.max-header must be 4KiB to 1MiB"),
		s.TLS.faults("tls"), s.Admin.faults("admin.tls"),
	}
}

func (t *TLS) faults(prefix string) error {
	return errors.Join(
		unless((t.Cert == "") == (t.Key == ""), prefix+".cert and "+prefix+".key go together"),
		unless(t.ClientCA == "" || t.Cert != "", prefix+".client-ca needs "+prefix+".cert"),
	)
}

// Open reads the files, for a listener that speaks these protocols, the best first; nil where there is to be no TLS.
func (t *TLS) Open(protos []string) (*certs.Files, error) {
	if t.Cert == "" {
		return nil, nil
	}
	return certs.Listener(t.Cert, t.Key, t.ClientCA, protos)
}

// Proxies returns the networks that are trusted.
func (s *Server) Proxies() ([]netip.Prefix, error) {
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
func (s *Server) checkFiles() error {
	_, public := s.TLS.Open(nil)
	_, admin := s.Admin.Open(nil)
	return errors.Join(public, admin)
}
