package servers

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// Certificates are files: a CA, and what it has signed for servers on loopback and for their clients.
type Certificates struct {
	CA                    string
	ServerCert, ServerKey string
	ClientCert, ClientKey string
}

// NewCertificates makes a CA and what it signs; no other knows it.
func NewCertificates(t testing.TB) Certificates {
	t.Helper()
	i := issuer{t: t, dir: t.TempDir()}
	i.key = i.newKey()
	i.ca = &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "test CA"}, NotBefore: time.Now().Add(-time.Hour),
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	c := Certificates{CA: i.sign("ca", i.ca, i.key)}
	c.ServerCert, c.ServerKey = i.issue("server", x509.ExtKeyUsageServerAuth)
	c.ClientCert, c.ClientKey = i.issue("client", x509.ExtKeyUsageClientAuth)
	return c
}

// issuer signs with a CA.
type issuer struct {
	t   testing.TB
	dir string
	ca  *x509.Certificate
	key *ecdsa.PrivateKey
}

func (i *issuer) newKey() *ecdsa.PrivateKey {
	i.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		i.t.Fatal(err)
	}
	return k
}

// issue returns the files of a certificate and its key.
func (i *issuer) issue(name string, use x509.ExtKeyUsage) (cert, key string) {
	i.t.Helper()
	k := i.newKey()
	b, err := x509.MarshalECPrivateKey(k)
	if err != nil {
		i.t.Fatal(err)
	}
	cert = i.sign(name, &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name}, NotBefore: i.ca.NotBefore, NotAfter: i.ca.NotAfter,
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{use},
		DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}, k)
	return cert, i.write(name+".key", "EC PRIVATE KEY", b)
}

func (i *issuer) sign(name string, c *x509.Certificate, k *ecdsa.PrivateKey) string {
	i.t.Helper()
	b, err := x509.CreateCertificate(rand.Reader, c, i.ca, &k.PublicKey, i.key)
	if err != nil {
		i.t.Fatal(err)
	}
	return i.write(name+".pem", "CERTIFICATE", b)
}

func (i *issuer) write(name, kind string, b []byte) string {
	i.t.Helper()
	path := filepath.Join(i.dir, name)
	if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: b}), 0o600); err != nil {
		i.t.Fatal(err)
	}
	return path
}
