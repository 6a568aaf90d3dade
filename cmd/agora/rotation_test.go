package main

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/presence"
)

// TestCAsOfRedisAreReadAtEveryConnection has one client outlive the CA that it began with, as where certificates are
// rotated.
func TestCAsOfRedisAreReadAtEveryConnection(t *testing.T) {
	t.Parallel()
	before, now := servers.NewCertificates(t), servers.NewCertificates(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	replace(t, ca, before.CA)
	access := presence.Access{CA: ca, Cert: now.ClientCert, Key: now.ClientKey}
	c, err := access.Dial("rediss://" + servers.RedisGuarded(t, &now))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a server is believed whose certificate nobody known has signed")
	}
	replace(t, ca, now.CA)
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("with the CA replaced: %v", err)
	}
	if err := os.WriteFile(ca, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := c.Ping(t.Context()).Err(); err != nil {
		t.Errorf("a connection that stands: %v", err)
	}
}

// replace puts another file's content into a file.
func replace(t *testing.T, file, with string) {
	t.Helper()
	b, err := os.ReadFile(with)
	if err == nil {
		err = os.WriteFile(file, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestCAsOfNATSAreReadAtEveryConnection has a connection to the log outlive the CA that it began with.
func TestCAsOfNATSAreReadAtEveryConnection(t *testing.T) {
	t.Parallel()
	before, now := servers.NewCertificates(t), servers.NewCertificates(t)
	secured := func(c servers.Certificates) servers.NATSConfig {
		return servers.NATSConfig{More: fmt.Sprintf("tls { cert_file: %q, key_file: %q }", c.ServerCert, c.ServerKey)}
	}
	s := servers.StartNATS(t, secured(before))
	ca := filepath.Join(t.TempDir(), "ca.pem")
	replace(t, ca, before.CA)
	b, err := broker.Connect(await.Context(t), broker.Config{URL: s.URL(), Access: broker.Access{CA: ca}, Replicas: 1, Shards: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	life := b.Life()
	s.Restart(t, secured(now))
	await.True(t, "it has tried in vain", func() bool { return b.Life() > life+2 })
	if b.Connected() {
		t.Fatal("a server is believed whose certificate nobody known has signed")
	}
	replace(t, ca, now.CA)
	await.True(t, "it is connected by the new CA", b.Connected)
}
