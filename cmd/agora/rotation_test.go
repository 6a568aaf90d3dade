package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/presence"
)

// TestCAsOfRedisAreReadAtEveryConnection has one client outlive the CA that it began with, as where certificates are rotated.
func TestCAsOfRedisAreReadAtEveryConnection(t *testing.T) {
	before, now := agoratest.NewCertificates(t), agoratest.NewCertificates(t)
	ca := filepath.Join(t.TempDir(), "ca.pem")
	replace := func(with string) {
		b, err := os.ReadFile(with)
		if err == nil {
			err = os.WriteFile(ca, b, 0o600)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	replace(before.CA)
	access := presence.Access{CA: ca, Cert: now.ClientCert, Key: now.ClientKey}
	c, err := access.Dial("rediss://" + agoratest.RedisGuarded(t, &now))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Ping(t.Context()).Err(); err == nil {
		t.Fatal("a server is believed whose certificate nobody known has signed")
	}
	replace(now.CA)
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
