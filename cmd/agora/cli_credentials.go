package main

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"strings"

	"github.com/spf13/pflag"

	"github.com/agora-relay/agora/client"
)

// credentials are what a verb presents to edges.
type credentials struct {
	token, tokenFile string
	trust
}

// What is done with the file of a token.
const (
	readAgain = "read again at every connect and before they end"
	readOnce  = "read once, at the start"
)

// flags defines the flags of who presents them for ids, empty for any.
func (c *credentials) flags(f *pflag.FlagSet, ids, read string) {
	f.StringVar(&c.token, "token", "", "credentials"+ids+"; better given as AGORA_TOKEN, which other users of the machine don't see")
	f.StringVar(&c.tokenFile, "token-file", "", "file of the credentials, instead; "+read)
	c.trust.flags(f, "edges")
}

// given tells whether there is anything to present.
func (c *credentials) given() bool { return c.token != "" || c.tokenFile != "" || c.cert != "" }

// source returns what reads the file of the token; nil where there is none.
func (c *credentials) source() client.TokenSource {
	if c.tokenFile == "" {
		return nil
	}
	return func(context.Context) (string, error) { return c.now() }
}

// now returns the token to present now.
func (c *credentials) now() (string, error) {
	if c.tokenFile == "" {
		return c.token, nil
	}
	b, err := os.ReadFile(c.tokenFile)
	return strings.TrimSpace(string(b)), err
}

// trust says whose certificates are believed, and which one is presented.
type trust struct{ ca, cert, key string }

func (t *trust) flags(f *pflag.FlagSet, whose string) {
	f.StringVar(&t.ca, "ca", "", "file of the CA that signed the certificates of "+whose+"; the system's CAs if empty")
	f.StringVar(&t.cert, "client-cert", "", "file of the certificate to present, and of those up to its CA; read again at every connect")
	f.StringVar(&t.key, "client-key", "", "file of the key of --client-cert")
}

// config returns what a connection with TLS is to do; nil for what is usual.
func (t *trust) config() (*tls.Config, error) {
	if *t == (trust{}) {
		return nil, nil
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	if t.ca != "" {
		b, err := os.ReadFile(t.ca)
		if err != nil {
			return nil, fmt.Errorf("--ca: %w", err)
		}
		if c.RootCAs = x509.NewCertPool(); !c.RootCAs.AppendCertsFromPEM(b) {
			return nil, fmt.Errorf("--ca: %s holds no certificate", t.ca)
		}
	}
	if (t.cert == "") != (t.key == "") {
		return nil, errors.New("--client-cert and --client-key go together")
	}
	if t.cert != "" {
		if _, err := t.own(nil); err != nil {
			return nil, fmt.Errorf("--client-cert: %w", err)
		}
		c.GetClientCertificate = t.own
	}
	return c, nil
}

// own returns the certificate to present, as its files say now.
func (t *trust) own(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	c, err := tls.LoadX509KeyPair(t.cert, t.key)
	return &c, err
}
