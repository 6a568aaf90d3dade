package main

import (
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/servers"
)

// health runs `agora health` and returns its status and all that it said.
func health(t *testing.T, args ...string) (int, string) {
	t.Helper()
	var out, errs strings.Builder
	status := run(t.Context(), append([]string{"health"}, args...), strings.NewReader(""), &out, &errs)
	return status, out.String() + errs.String()
}

func TestHealthSaysWhatTheEdgeOnThisMachineSays(t *testing.T) {
	t.Parallel()
	e := launch(t, backends(t)...).ready()
	admin := strings.TrimPrefix(e.admin, "http://")
	_, port, _ := strings.Cut(admin, ":")
	file := filepath.Join(t.TempDir(), "agora.yaml")
	if err := os.WriteFile(file, []byte("auth: none\nadmin-addr: 0.0.0.0:"+port+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"--admin-addr", admin}, {"--admin-addr", ":" + port}, {"--admin-addr", "[::]:" + port}, {"--config", file}} {
		if status, said := health(t, args...); status != 0 || said != "ready\n" {
			t.Errorf("agora health %v ended with %d, %q, want 0, ready", args, status, said)
		}
	}
	e.ended()
	if status, said := health(t, "--admin-addr", admin); status != 1 {
		t.Errorf("without an edge it ended with %d, %q, want 1", status, said)
	}
}

func TestHealthAsksAnAdminPortWithACertificate(t *testing.T) {
	t.Parallel()
	certs := servers.NewCertificates(t)
	secured := []string{"--admin.tls.cert", certs.ServerCert, "--admin.tls.key", certs.ServerKey}
	e := launch(t, append(backends(t), secured...)...).ready()
	_, admin, _ := strings.Cut(e.admin, "://")
	if status, said := health(t, append(secured, "--admin-addr", admin)...); status != 0 || said != "ready\n" {
		t.Errorf("it ended with %d, %q, want 0, ready", status, said)
	}
	if status, said := health(t, "--admin-addr", admin); status != 1 {
		t.Errorf("without TLS it ended with %d, %q, want 1", status, said)
	}
}

func TestHealthDoesNotWaitForAnEdgeThatSaysNothing(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { <-over }))
	defer s.Close()
	defer close(over)
	status, said := health(t, "--admin-addr", s.Listener.Addr().String(), "--timeout", "50ms")
	if status != 1 || !strings.Contains(said, "deadline") {
		t.Errorf("it ended with %d, %q, want 1 and a deadline", status, said)
	}
}
