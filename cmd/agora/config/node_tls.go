package config

import (
	"errors"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/cmd/agora/certs"
)

// nodeTLSSettings say how an edge speaks TLS with nodes and gateways that it dials.
type nodeTLSSettings struct{ ca, cert, key string }

func (s *nodeTLSSettings) flags(f *pflag.FlagSet) {
	f.StringVar(&s.ca, "aip.node-tls.ca", "", "file of the CAs that sign the certificates of AIP nodes and of linked gateways, which are all dialled by TLS then, and without it if empty; read again when it changes")
	f.StringVar(&s.cert, "aip.node-tls.cert", "", "file of the certificate that is presented to them; none if empty; read again when it changes")
	f.StringVar(&s.key, "aip.node-tls.key", "", "file of the key of aip.node-tls.cert")
}

func (s *nodeTLSSettings) faults() error {
	return errors.Join(
		unless((s.cert == "") == (s.key == ""), "aip.node-tls.cert and aip.node-tls.key go together"),
		unless(s.cert == "" || s.ca != "", "aip.node-tls.cert needs aip.node-tls.ca"),
	)
}

// Open reads the files; nil where nodes are dialled without TLS.
func (s nodeTLSSettings) Open() (*certs.Files, error) {
	if s.ca == "" {
		return nil, nil
	}
	return certs.Dialer(s.ca, s.cert, s.key)
}
