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

// certificates are the certificate of a listener and the CAs of its clients,
// as their files say now. They are a [reload.Source].
type certificates struct {
	files  tlsSettings
	protos []string // that a client may choose of, the best first
	now    atomic.Pointer[tls.Config]

	mu  sync.Mutex // guards the field below
	sum [sha256.Size]byte
}

// open reads the files, for a listener that speaks these protocols; nil where there is to be no TLS.
func (t tlsSettings) open(protos []string) (*certificates, error) {
	if t.cert == "" {
		return nil, nil
	}
	c := &certificates{files: t, protos: protos}
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
func (c *certificates) Name() string { return c.files.cert }

// Look reads the files. Where they don't fit together, as while they are being
// replaced one after the other, what was there before stays.
func (c *certificates) Look() (bool, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	cert, err := os.ReadFile(c.files.cert)
	if err != nil {
		return false, err
	}
	key, err := os.ReadFile(c.files.key)
	if err != nil {
		return false, err
	}
	var ca []byte
	if c.files.clientCA != "" {
		if ca, err = os.ReadFile(c.files.clientCA); err != nil {
			return false, err
		}
	}
	sum := sha256.Sum256(bytes.Join([][]byte{cert, key, ca}, []byte{0}))
	if c.now.Load() != nil && sum == c.sum {
		return false, nil
	}
	made, err := c.make(cert, key, ca)
	if err != nil {
		return false, err
	}
	c.sum = sum
	c.now.Store(made)
	return true, nil
}

func (c *certificates) make(cert, key, ca []byte) (*tls.Config, error) {
	pair, err := tls.X509KeyPair(cert, key)
	if err != nil {
		return nil, fmt.Errorf("%s and %s: %w", c.files.cert, c.files.key, err)
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: c.protos}
	if c.files.clientCA == "" {
		return made, nil
	}
	made.ClientCAs = x509.NewCertPool()
	if !made.ClientCAs.AppendCertsFromPEM(ca) {
		return nil, fmt.Errorf("%s: %w", c.files.clientCA, errors.New("there is no certificate in it"))
	}
	// Whoever has none may still have a token. A session that is resumed would skip the
	// CAs, which may be others by then.
	made.ClientAuth, made.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	return made, nil
}

// watch looks after the files until ctx is over.
func (c *certificates) watch(ctx context.Context, log *slog.Logger) {
	reload.Watch(ctx, log, func(reload.Source) {}, c)
}
