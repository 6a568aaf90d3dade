package config

import (
	"os"
	"path/filepath"
	"testing"
)

func TestASecretOfDigitsIsTakenAsItStandsInTheFile(t *testing.T) {
	var o Edge
	f := defined(o.Flags)
	path := filepath.Join(t.TempDir(), "agora.yaml")
	if err := os.WriteFile(path, []byte("nats.token: 0123\nredis.password: 1e3\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := f.Set("config", path); err != nil {
		t.Fatal(err)
	}
	if _, err := Fill(f, func(string) (string, bool) { return "", false }); err != nil {
		t.Fatal(err)
	}
	if o.NATS.token != "0123" || o.Redis.password != "1e3" {
		t.Errorf("token %q, password %q, want 0123 and 1e3", string(o.NATS.token), string(o.Redis.password))
	}
}

func TestNoAddressIsShownWithItsSecrets(t *testing.T) {
	for u, want := range map[string]string{
		"nats://h:4222":                          "nats://h:4222",
		"h:4222":                                 "h:4222",
		"joe:pass@h:4222":                        "***@h:4222",
		"nats://token@h:4222":                    "nats://***@h:4222",
		"redis://:p@ss@h:6379/1":                 "redis://***@h:6379/1",
		"redis://:pa?ss@h:6379/1?db=2":           "redis://***@h:6379/1?db=2",
		"redis://h:1?sentinel_password=a&addr=b": "redis://h:1?sentinel_password=***&addr=b",
		"nats://joe:pa":                          "nats://***",
		"nats://[::1]:4222":                      "nats://[::1]:4222",
	} {
		if got := masked(u); got != want {
			t.Errorf("%s is shown as %s, want %s", u, got, want)
		}
	}
}
