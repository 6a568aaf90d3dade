package sidecar_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"log/slog"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/sidecar"
)

func TestTheAPIForTheAgentAsksForItsToken(t *testing.T) {
	s, p := newSite(t, 1), newPlain(t)
	path := filepath.Join(t.TempDir(), "token")
	says := func(text string) {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	says("first\n")
	r := s.run(p, func(cfg *sidecar.Config) { cfg.Token = path })
	asks := func(method, at, token string) int {
		q, err := http.NewRequestWithContext(await.Context(t), method, r.admin+at, strings.NewReader(`{}`))
		if err != nil {
			t.Fatal(err)
		}
		if token != "" {
			q.Header.Set("Authorization", token)
		}
		status, _ := s.does(q)
		return status
	}
	for _, at := range []string{"/send", "/reply", "/ask", "/spaces/x/join", "/spaces/x/leave", "/spaces/x/publish"} {
		for _, token := range []string{"", "Bearer", "Bearer other", "Basic first", "first"} {
			if status := asks(http.MethodPost, at, token); status != http.StatusUnauthorized {
				t.Errorf("%s with %q is answered %d", at, token, status)
			}
		}
		if status := asks(http.MethodPost, at, "bearer first"); status == http.StatusUnauthorized {
			t.Errorf("%s with the token is answered %d", at, status)
		}
	}
	for _, at := range []string{"/healthz", "/readyz", "/metrics"} {
		if status := asks(http.MethodGet, at, ""); status != http.StatusOK {
			t.Errorf("%s is answered %d", at, status)
		}
	}
	says("second\n")
	if one, other := asks(http.MethodPost, "/send", "Bearer first"), asks(http.MethodPost, "/send", "Bearer second"); one != http.StatusUnauthorized || other == http.StatusUnauthorized {
		t.Errorf("when it is replaced, the first token is answered %d, and the second %d", one, other)
	}
	says("")
	if status := asks(http.MethodPost, "/send", "Bearer "); status != http.StatusServiceUnavailable {
		t.Errorf("without a token in the file it is answered %d", status)
	}
}

func TestASidecarSaysThatItsAPIIsOpen(t *testing.T) {
	for address, warns := range map[string]bool{"127.0.0.1:0": false, "0.0.0.0:0": true} {
		s, p := newSite(t, 1), newPlain(t)
		l, err := net.Listen("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		var log lockedBuffer
		r := s.run(p, func(cfg *sidecar.Config) {
			_ = cfg.Admin.Close()
			cfg.Admin, cfg.Log = l, slog.New(slog.NewTextHandler(&log, nil))
		})
		if got := strings.Contains(log.String(), "speaks as the agent"); got != warns {
			t.Errorf("at %s it warns: %v, want %v", address, got, warns)
		}
		_ = r.stops()
	}
}
