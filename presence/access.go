package presence

import (
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"os"
)

// Access is how to get into a Redis that does not let everybody in; what it says goes before what the address
// has in it. The zero value adds nothing.
type Access struct {
	User, Password   string // redis.user, redis.password: of the servers, also of those behind Sentinel
	SentinelPassword string // redis.sentinel.password
	CA               string // redis.tls.ca: file of what may have signed a server's certificate; the system's if empty
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
