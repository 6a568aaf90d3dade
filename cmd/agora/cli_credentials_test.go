package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/await"
)

// ran runs the program to its end, and returns its exit status and all that it said.
func ran(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out output
	return run(context.Background(), args, strings.NewReader(""), &out, &out), out.String()
}

// file makes a file of a text.
func file(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestVerbsSpeakToEdgesWhoseCAIsNotTheSystems(t *testing.T) {
	f := startFort(t)
	token := file(t, f.jane+"\n")
	trusting := []string{"agents", "--url", f.address, "--ca", f.certs.CA}
	for about, c := range map[string]struct {
		args   []string
		status int
		says   string
	}{
		"token of a file":      {[]string{"--token-file", token}, 0, ""},
		"certificate":          {[]string{"--client-cert", f.certs.ClientCert, "--client-key", f.certs.ClientKey}, 0, ""},
		"nothing to present":   {nil, exit.Forbidden, "UNAUTHORIZED"},
		"system's CAs":         {[]string{"--token-file", token, "--ca", ""}, exit.Unavailable, "unknown authority"},
		"no file of the CA":    {[]string{"--token-file", token, "--ca", token + ".none"}, exit.Usage, "--ca"},
		"no CA in the file":    {[]string{"--token-file", token, "--ca", token}, exit.Usage, "holds no certificate"},
		"certificate, no key":  {[]string{"--client-cert", f.certs.ClientCert}, exit.Usage, "go together"},
		"no certificate there": {[]string{"--client-cert", token, "--client-key", token}, exit.Usage, "--client-cert"},
	} {
		if status, out := ran(t, append(trusting[:len(trusting):len(trusting)], c.args...)...); status != c.status || !strings.Contains(out, c.says) {
			t.Errorf("%s: agora agents ended with %d, want %d with %q: %s", about, status, c.status, c.says, out)
		}
	}
	t.Setenv("AGORA_CA", f.certs.CA)
	t.Setenv("AGORA_TOKEN_FILE", token)
	if status, out := ran(t, "send", "--to", "jane", "--url", f.address, "--from", "jane/laptop", "hello"); status != exit.NotFound {
		t.Errorf("with settings of the environment: agora send to who has never been ended with %d, want %d: %s", status, exit.NotFound, out)
	}
}

func TestBenchPresentsTokensOfFilesAndCertificates(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	f := startFort(t)
	bench, line, err := auth.NewToken(auth.Line{Name: "bench", Agents: []string{"bench-*", "soak-*"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.tokens, []byte(line), 0o600); err != nil {
		t.Fatal(err)
	}
	token := file(t, bench+"\n")
	await.True(t, "the token is good", func() bool { _, status := f.open(t, "", bench); return status == 101 })
	for _, verb := range []string{
		"oneshot --senders 1 --receivers 1 --warmup 1ms --duration 100ms", "storm --agents 2 --missed 2",
		"idle --agents 4 --processes 2 --warmup 1ms --duration 1ms",
		"soak --duration 200ms --senders 1 --receivers 1 --spaces 0",
	} {
		args := append([]string{"bench"}, strings.Fields(verb)...)
		where := "--url"
		if args[1] == "soak" {
			where = "--edges"
		}
		args = append(args, where, f.address, "--ca", f.certs.CA)
		if status, out := ran(t, append(args, "--token-file", token)...); status != 0 {
			t.Errorf("agora bench %s ended with %d: %s", verb, status, out)
		}
		status, out := ran(t, append(args, "--client-cert", f.certs.ClientCert, "--client-key", f.certs.ClientKey)...)
		if status == 0 || !strings.Contains(out, "FORBIDDEN") {
			t.Errorf("with a certificate for other ids, agora bench %s ended with %d: %s", verb, status, out)
		}
		if args[1] == "idle" && status != exit.Forbidden {
			t.Errorf("its processes were refused, and agora bench idle ended with %d, want %d", status, exit.Forbidden)
		}
	}
}

func TestOperatorsAskAdminPortsWithTLS(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	guarded := startDev(t, "--admin.tls.cert", f.certs.ServerCert, "--admin.tls.key", f.certs.ServerKey, "--admin.tls.client-ca", f.certs.CA)
	ask := []string{"inspect", "edge", "--admin", guarded.admin[0]}
	if status, out := ran(t, ask...); status != exit.Unavailable || !strings.Contains(out, "unknown authority") {
		t.Errorf("with the system's CAs: %d: %s", status, out)
	}
	ask = append(ask, "--ca", f.certs.CA)
	if status, out := ran(t, ask...); status != exit.Unavailable {
		t.Errorf("without a certificate: %d: %s", status, out)
	}
	if status, out := ran(t, append(ask, "--client-cert", f.certs.ClientCert, "--client-key", f.certs.ClientKey)...); status != 0 {
		t.Errorf("with a certificate: %d: %s", status, out)
	}
}
