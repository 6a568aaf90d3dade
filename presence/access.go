package presence

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"time"
)

// Access is how to get into a Redis that does not let everybody in; what it says goes before what the address
// has in it. The zero value adds nothing.
type Access struct {
	User, Password   string // redis.user, redis.password: of the servers, also of those behind Sentinel
	SentinelPassword string // redis.sentinel.password
	CA               string // redis.tls.ca: file of what may have signed a server's certificate, read again at every connection; the system's if empty
	Cert, Key        string // redis.tls.cert, redis.tls.key: files of the client's certificate, read again at every connection
}

// Check reads the files that a names and returns what is wrong with each, by its setting. It does not connect.
func (a Access) Check() error {
	_, caErr := a.roots()
	if caErr != nil {
		caErr = fmt.Errorf("redis.tls.ca: %w", caErr)
	}
	_, certErr := a.certificate(nil)
	if certErr != nil {
		certErr = fmt.Errorf("redis.tls.cert and redis.tls.key: %w", certErr)
	}
	return errors.Join(caErr, certErr)
}

// secure adds what a says to the settings of a connection that has any.
func (a Access) secure(c *tls.Config) error {
	if a.CA == "" && a.Cert == "" && a.Key == "" {
		return nil
	}
	if c == nil {
		return errors.New("redis.tls.… needs an address that begins with rediss")
	}
	if err := a.Check(); err != nil {
		return err
	}
	roots, err := a.roots()
	if err != nil {
		return err
	}
	c.MinVersion, c.RootCAs = tls.VersionTLS12, roots
	if a.Cert != "" {
		c.GetClientCertificate = a.certificate
	}
	return nil
}

// dialer returns what connects with the CAs that are in their file at that moment, those of c where it can't be read,
// as when it is just being replaced; nil, which is the library's own way, where there is no such file. A timeout of 0
// stands for the library's.
func (a Access) dialer(c *tls.Config, timeout time.Duration) func(ctx context.Context, network, addr string) (net.Conn, error) {
	if a.CA == "" {
		return nil
	}
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		now := c.Clone()
		if roots, err := a.roots(); err == nil {
			now.RootCAs = roots
		}
		d := tls.Dialer{NetDialer: &net.Dialer{Timeout: cmp.Or(timeout, dialTimeout)}, Config: now}
		return d.DialContext(ctx, network, addr)
	}
}

// dialTimeout is the library's own.
const dialTimeout = 5 * time.Second

func (a Access) roots() (*x509.CertPool, error) {
	if a.CA == "" {
		return nil, nil
	}
	b, err := os.ReadFile(a.CA)
	if err != nil {
		return nil, err
	}
	p := x509.NewCertPool()
	if !p.AppendCertsFromPEM(b) {
		return nil, fmt.Errorf("%s holds no certificate", a.CA)
	}
	return p, nil
}

// certificate reads the client's certificate; an empty one where there is none.
func (a Access) certificate(*tls.CertificateRequestInfo) (*tls.Certificate, error) {
	if a.Cert == "" && a.Key == "" {
		return &tls.Certificate{}, nil
	}
	c, err := tls.LoadX509KeyPair(a.Cert, a.Key)
	return &c, err
}

func (a Access) user(was string) string { return orGiven(a.User, was) }

func (a Access) password(was string) string { return orGiven(a.Password, was) }

// orGiven returns v, or what the address says where that is empty.
func orGiven(v, was string) string {
	if v == "" {
		return was
	}
	return v
}
