// Package certs reads certificates and CAs from their files, and again when those change.
package certs

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

// Files are the certificate of this end of connections and the CAs of the other, as their files say now. They are a
// [reload.Source].
type Files struct {
	files []string // "" for one that there is not
	make  func(contents [][]byte) (*tls.Config, error)
	now   atomic.Pointer[tls.Config]

	mu  sync.Mutex // guards the field below
	sum [sha256.Size]byte
}

// Listener reads the files of a listener that speaks these protocols, the best first: its certificate, with those up to
// its CA, the key of that, and the CAs of clients, "" for none.
func Listener(cert, key, clientCA string, protos []string) (*Files, error) {
	return open([]string{cert, key, clientCA}, func(contents [][]byte) (*tls.Config, error) {
		return listener(cert, key, clientCA, contents, protos)
	})
}

// Dialer reads the files of who dials: the CAs that it believes, and the certificate that it presents, with its key, ""
// for none.
func Dialer(ca, cert, key string) (*Files, error) {
	return open([]string{ca, cert, key}, func(contents [][]byte) (*tls.Config, error) {
		return dialer(ca, cert, key, contents)
	})
}

func open(files []string, read func([][]byte) (*tls.Config, error)) (*Files, error) {
	f := &Files{files: files, make: read}
	_, err := f.Look()
	return f, err
}

// Config returns what a listener is to use: each handshake has the newest
// certificate. With needPeer and CAs of clients, every client needs a certificate.
func (f *Files) Config(needPeer bool) *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
			now := f.now.Load()
			if needPeer && now.ClientCAs != nil {
				now = now.Clone()
				now.ClientAuth = tls.RequireAndVerifyClientCert
			}
			return now, nil
		},
	}
}

// Now returns what who dials is to use, as the files say now. It is shared, and not to be changed.
func (f *Files) Now() *tls.Config { return f.now.Load() }

// Name says which files these are.
func (f *Files) Name() string { return f.files[0] }

// Look reads the files. Where they don't fit together, as while they are being
// replaced one after the other, what was there before stays.
func (f *Files) Look() (bool, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	contents := make([][]byte, len(f.files))
	for k, path := range f.files {
		if path == "" {
			continue
		}
		var err error
		if contents[k], err = os.ReadFile(path); err != nil {
			return false, err
		}
	}
	sum := sha256.Sum256(bytes.Join(contents, []byte{0}))
	if f.now.Load() != nil && sum == f.sum {
		return false, nil
	}
	made, err := f.make(contents)
	if err != nil {
		return false, err
	}
	f.sum = sum
	f.now.Store(made)
	return true, nil
}

// listener returns how a listener is served by a certificate, its key and the CAs of clients.
func listener(cert, key, clientCA string, contents [][]byte, protos []string) (*tls.Config, error) {
	pair, err := pairOf(cert, key, contents)
	if err != nil {
		return nil, err
	}
	made := &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{pair}, NextProtos: protos}
	if clientCA == "" {
		return made, nil
	}
	if made.ClientCAs, err = poolOf(clientCA, contents[2]); err != nil {
		return nil, err
	}
	// Anyone who has none may still have a token. A session that is resumed would skip the
	// CAs, which may be others by then.
	made.ClientAuth, made.SessionTicketsDisabled = tls.VerifyClientCertIfGiven, true
	return made, nil
}

// dialer returns how those are dialled that have a certificate of the CAs, with a certificate for them and its key.
func dialer(ca, cert, key string, contents [][]byte) (*tls.Config, error) {
	pool, err := poolOf(ca, contents[0])
	if err != nil || cert == "" {
		return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool}, err
	}
	pair, err := pairOf(cert, key, contents[1:])
	return &tls.Config{MinVersion: tls.VersionTLS12, RootCAs: pool, Certificates: []tls.Certificate{pair}}, err
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

// Watch reads the files again when they change, until ctx is over.
func (f *Files) Watch(ctx context.Context, log *slog.Logger) {
	reload.Watch(ctx, log, func(reload.Source) {}, f)
}
