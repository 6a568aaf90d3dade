package serve

import (
	"encoding/json"
	"encoding/pem"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/await"
)

// patched is what Kubernetes is asked.
type patched struct{ path, token, kind, cost string }

// kubernetes answers as Kubernetes' API does, with a status, and returns the pod that asks it, and what it is asked.
func kubernetes(t *testing.T, status int, log *slog.Logger) (*pod, <-chan patched) {
	t.Helper()
	asked := make(chan patched, 1)
	api := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var body struct {
			Metadata struct{ Annotations map[string]string }
		}
		if err := json.NewDecoder(r.Body).Decode(&body); err != nil || r.Method != http.MethodPatch {
			t.Errorf("%s: %v", r.Method, err)
		}
		w.WriteHeader(status)
		select {
		case asked <- patched{r.URL.Path, r.Header.Get("Authorization"), r.Header.Get("Content-Type"), body.Metadata.Annotations[podCost]}:
		case <-r.Context().Done(): // the test is over
		}
	}))
	t.Cleanup(api.Close)
	account := t.TempDir()
	for name, text := range map[string]string{
		"namespace": "agents", "token": "secret\n", "ca.crt": string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: api.Certificate().Raw})),
	} {
		if err := os.WriteFile(filepath.Join(account, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	host, port, err := net.SplitHostPort(api.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	env := map[string]string{"KUBERNETES_SERVICE_HOST": host, "KUBERNETES_SERVICE_PORT": port, "HOSTNAME": "agora-1"}
	p, err := findPod(func(name string) string { return env[name] }, account, log)
	if err != nil {
		t.Fatal(err)
	}
	return p, asked
}

func TestKubernetesIsToldHowManySessionsAPodHas(t *testing.T) {
	t.Parallel()
	p, asked := kubernetes(t, http.StatusOK, slog.New(slog.NewTextHandler(io.Discard, nil)))
	var sessions, looks atomic.Int64
	sessions.Store(100)
	stop := p.follow(func() int64 {
		looks.Add(1)
		return sessions.Load()
	}, time.Millisecond)
	defer stop()
	want := patched{"/api/v1/namespaces/agents/pods/agora-1", "Bearer secret", "application/merge-patch+json", "100"}
	if got := await.Recv(t, "the first word", asked); got != want {
		t.Errorf("Kubernetes is asked %+v, want %+v", got, want)
	}
	sessions.Store(109) // too little a change
	from := looks.Load()
	await.True(t, "the pod looks again", func() bool { return looks.Load() > from+5 })
	sessions.Store(0)
	if got := await.Recv(t, "the second word", asked); got.cost != "0" {
		t.Errorf("Kubernetes is told %s sessions, want 0", got.cost)
	}
}

func TestARightThatIsMissingIsLoggedOnce(t *testing.T) {
	t.Parallel()
	var log strings.Builder
	p, asked := kubernetes(t, http.StatusForbidden, slog.New(slog.NewTextHandler(&log, nil)))
	stop := p.follow(func() int64 { return 1 }, time.Millisecond)
	for range 3 {
		await.Recv(t, "it is asked again", asked)
	}
	stop()
	if n := strings.Count(log.String(), "HTTP 403: the pod's account needs the right to patch pods"); n != 1 {
		t.Errorf("it is logged %d times: %s", n, log.String())
	}
}

func TestOutsideOfAPodNothingIsToldToKubernetes(t *testing.T) {
	t.Parallel()
	if _, err := findPod(func(string) string { return "" }, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "this is no pod") {
		t.Errorf("findPod = %v", err)
	}
	if _, err := findPod(func(string) string { return "x" }, t.TempDir(), nil); err == nil || !strings.Contains(err.Error(), "is not mounted") {
		t.Errorf("findPod = %v", err)
	}
}
