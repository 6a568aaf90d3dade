package main

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"

	"github.com/agora-relay/agora/internal/reload"
)

// certificates are the certificate of this end of connections and the CAs of the other, as their files say now. They are a [reload.Source].
type certificates struct {
	files []string // "" for one that there is not
	make  func(contents [][]byte) (*tls.Config, error)
	now   atomic.Pointer[tls.Config]

	mu  sync.Mutex // guards the field below
	sum [sha256.Size]byte
}

// open reads the files, for a listener that speaks these protocols, the best first; nil where there is to be no TLS.
func (t tlsSettings) open(protos []string) (*certificates, error) {
	if t.cert == "" {
		return nil, nil
	}
	c := &certificates{files: []string{t.cert, t.key, t.clientCA}, make: func(contents [][]byte) (*tls.Config, error) {
		return t.make(contents, protos)
	}}
	_, err := c.Look()
	return c, err
}

// config returns what a listener is to use: each handshake has the newest
// certificate. With needPeer and CAs of clients, every client needs a certificate.
func (c *certificates) config(needPeer bool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := c.now.Load()
			if needPeer && now.ClientCAs != nil {
				now = now.Clone()
				now.ClientAuth = tls.RequireAndVerifyClientCert
			}
			return now, nil
		},
	}
}

// Name says which files these are.
func (c *certificates) Name() string { return c.files[0] }

// Look reads the files. Where they don't fit together, as while they are being
// replaced one after the other, what was there before stays.
func (c *certificates) Look() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	contents := make([][]byte, len(c.files))
	for k, path := range c.files {
		if path == "" {
			continue
		}
		var err error
		if contents[k], err = os.ReadFile(path); err != nil {
			return false, err
		}
	}
	sum := sha256.Sum256(bytes.Join(contents, []byte{0}))
	if c.now.Load() != nil && sum == c.sum {
		return false, nil
	}
	made, err := c.make(contents)
	if err != nil {
		return false, err
	}
	c.sum = sum
	c.now.Store(made)
	return true, nil
}

// make returns how a listener is served by a certificate, its key and the CAs of clients.
func (t tlsSettings) make(contents [][]byte, protos []string) (*tls.Config, error) {
	pair, err := pairOf(t.cert, t.key, contents)
	if err != nil {
		return nil, err
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: protos}
	if t.clientCA == "" {
		return made, nil
	}
	if made.ClientCAs, err = poolOf(t.clientCA, contents[2]); err != nil {
		return nil, err
	}
	// Whoever has none may still have a token. A session that is resumed would skip the
	// CAs, which may be others by then.
	made.ClientAuth, made.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	return made, nil
}

// pairOf returns the certificate that the first two contents are.
func pairOf(cert, key string, contents [][]byte) (tls.Certificate, error) {
	pair, err := tls.X509KeyPair(contents[0], contents[1])
	if err != nil {
		err = fmt.Errorf("%s and %s: %w", cert, key, err)
	}
	return pair, err
}

// poolOf returns the CAs that stand in a file.
func poolOf(path string, contents []byte) (*x509.CertPool, error) {
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(contents) {
		return nil, fmt.Errorf("%s: %w", path, errors.New("there is no certificate in it"))
	}
	return pool, nil
}

// watch looks after the files until ctx is over.
func (c *certificates) watch(ctx context.Context, log *slog.Logger) {
	reload.Watch(ctx, log, func(reload.Source) {}, c)
}
