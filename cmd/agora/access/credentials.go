// Package access is what a verb presents to edges and admin ports, whose certificates it believes, and where they are.
package access

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/client"
)

// Credentials are what a verb presents to edges.
type Credentials struct {
	Token, TokenFile string
	Trust
}

// What is done with the file of a token.
const (
	ReadAgain = "read again at every connect and before they end"
	ReadOnce  = "read once, at the start"
)

// Flags defines the flags of a verb that presents them for ids, empty for any; read says when the file of the token is
// read.
func (c *Credentials) Flags(f *pflag.FlagSet, ids, read string) {
	f.StringVar(&c.Token, "token", "", "credentials"+ids+"; better given as AGORA_TOKEN, which other users of the machine don't see")
	f.StringVar(&c.TokenFile, "token-file", "", "file of the credentials, instead; "+read)
	c.Trust.Flags(f, "edges")
}

// Given reports whether there is anything to present.
func (c *Credentials) Given() bool { return c.Token != "" || c.TokenFile != "" || c.Cert != "" }

// Source returns a function that reads the file of the token; nil where there is none.
func (c *Credentials) Source() client.TokenSource {
	if c.TokenFile == "" {
		return nil
	}
	return func(context.Context) (string, error) { return c.Now() }
}

// Now returns the token to present now.
func (c *Credentials) Now() (string, error) {
	if c.TokenFile == "" {
		return c.Token, nil
	}
	b, err := os.ReadFile(c.TokenFile)
	return strings.TrimSpace(string(b)), err
}

// Trust says whose certificates are believed, and which one is presented.
type Trust struct{ CA, Cert, Key string }

// Flags defines the flags that say so; whose are the certificates that are believed.
func (t *Trust) Flags(f *pflag.FlagSet, whose string) {
	f.StringVar(&t.CA, "ca", "", "file of the CA that signed the certificates of "+whose+"; the system's CAs if empty")
	f.StringVar(&t.Cert, "client-cert", "", "file of the certificate to present, and of those up to its CA; read again at every connect")
	f.StringVar(&t.Key, "client-key", "", "file of the key of --client-cert")
}

// Config returns the settings of a connection with TLS; nil for the usual ones. Its errors name the flag that is wrong.
func (t *Trust) Config() (*tls.Config, error) {
	if *t == (Trust{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.CA != "" {
		b, err := os.ReadFile(t.CA)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca: %s holds no certificate", t.CA)
		}
	}
	if (t.Cert == "") != (t.Key == "") {
		return nil, errors.New("--client-cert and --client-key go together")
	}
	if t.Cert != "" {
		if _, err := t.Own(nil); err != nil {
			return nil, fmt.Errorf("--client-cert: %w", err)
		}
		c.GetClientCertificate = t.Own
	}
	return c, nil
}

// Own returns the certificate to present, as its files say now; it is a GetClientCertificate.
func (t *Trust) Own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(t.Cert, t.Key)
	return &c, err
}

// URLs returns the addresses of a list: an edge's page is as good as its WebSocket, and HOST:PORT alone is taken for
// ws://.
func URLs(list string) []string {
	all := strings.Split(list, ",")
	for i, a := range all {
		a = strings.TrimSpace(a)
		if host, ok := strings.CutPrefix(a, "http://"); ok {
			a = "ws://" + host
		} else if host, ok := strings.CutPrefix(a, "https://"); ok {
			a = "wss://" + host
		} else if host, _, _ := strings.Cut(a, "/"); !strings.Contains(a, "://") && isHostPort(host) {
			a = "ws://" + a
		}
		all[i] = a
	}
	return all
}

func isHostPort(s string) bool {
	_, port, err := net.SplitHostPort(s)
	return err == nil && port != ""
}
