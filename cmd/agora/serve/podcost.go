package serve

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora/internal/pause"
)

// podCost is the annotation of a pod by which Kubernetes chooses which one a smaller ReplicaSet loses: the one with the
// lowest. It is how many sessions the edge has.
const podCost = "controller.kubernetes.io/pod-deletion-cost"

const (
	podLook    = 30 * time.Second // between two looks at how many there are: each change costs Kubernetes a write
	podTimeout = 10 * time.Second // of one request
	podAccount = "/var/run/secrets/kubernetes.io/serviceaccount"
)

// pod is the pod that the process runs in, as Kubernetes tells it.
type pod struct {
	url    string // of the pod at Kubernetes' API
	token  string // path of its account's token, which is exchanged now and then
	client *http.Client
	log    *slog.Logger
}

// findPod finds the pod of this process by what Kubernetes puts into it: the environment, and the folder of its
// account.
func findPod(getenv func(string) string, account string, log *slog.Logger) (*pod, error) {
	host, port, name := getenv("KUBERNETES_SERVICE_HOST"), getenv("KUBERNETES_SERVICE_PORT"), cmp.Or(getenv("POD_NAME"), getenv("HOSTNAME")) // a host's name is cut at 63 characters
	if host == "" || port == "" || name == "" {
		return nil, fmt.Errorf("kubernetes.pod-deletion-cost: this is no pod of Kubernetes")
	}
	namespace, err := os.ReadFile(filepath.Join(account, "namespace"))
	if err != nil {
		return nil, fmt.Errorf("kubernetes.pod-deletion-cost: the token of the pod's account is not mounted: %w", err)
	}
	ca, err := os.ReadFile(filepath.Join(account, "ca.crt"))
	if err != nil {
		return nil, fmt.Errorf("kubernetes.pod-deletion-cost: %w", err)
	}
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(ca)
	return &pod{
		url:    fmt.Sprintf("https://%s/api/v1/namespaces/%s/pods/%s", net.JoinHostPort(host, port), strings.TrimSpace(string(namespace)), name),
		token:  filepath.Join(account, "token"),
		client: &http.Client{Timeout: podTimeout, Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}}},
		log:    log,
	}, nil
}

// follow says how many sessions there are each time that it has changed by a tenth, until stop is called, which waits
// for the end.
func (p *pod) follow(sessions func() int64, every time.Duration) (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	var running sync.WaitGroup
	running.Go(func() {
		said, failed := int64(-1), false
		for ; ; pause.For(ctx, every) {
			if ctx.Err() != nil {
				return
			}
			now := sessions()
			if said >= 0 && differ(now, said) <= said/10 {
				continue
			}
			err := p.say(ctx, now)
			if err == nil {
				said = now
			} else if !failed && ctx.Err() == nil {
				p.log.Warn("Kubernetes was not told how many sessions the pod has: it may end a full one first", "err", err)
			}
			failed = err != nil
		}
	})
	return func() {
		cancel()
		running.Wait()
		p.client.CloseIdleConnections()
	}
}

// say writes the pod's annotation.
func (p *pod) say(ctx context.Context, sessions int64) error {
	token, err := os.ReadFile(p.token)
	if err != nil {
		return err
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{"annotations": map[string]string{podCost: strconv.FormatInt(min(sessions, 1<<31-1), 10)}}})
	if err != nil {
		return err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPatch, p.url, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	r.Header.Set("Authorization", "Bearer "+strings.TrimSpace(string(token)))
	r.Header.Set("Content-Type", "application/merge-patch+json")
	resp, err := p.client.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	_, _ = io.Copy(io.Discard, io.LimitReader(resp.Body, 1<<20)) // so that the connection serves again
	if resp.StatusCode != http.StatusOK {
		return fmt.Errorf("HTTP %d: the pod's account needs the right to patch pods", resp.StatusCode)
	}
	return nil
}
