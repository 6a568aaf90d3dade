package agoratest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"testing"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// DevProcess is an `agora dev` process, at free ports of its own.
type DevProcess struct {
	URLs []string // of its edges, over HTTP
	GRPC []string // HOST:PORT of each, for AIP

	proc servers.Process
}

var devEdge = regexp.MustCompile(`(?m)^  edge-\d+  ws(s?://\S+)/ws  grpcs?://(\S+)(?:  /\S+/p2p/\S+)?  admin `)

// StartDev builds the command, and runs `agora dev` with more flags until it says that it is ready. It is ended with
// the test, which fails unless that goes in order.
func StartDev(t testing.TB, flags ...string) *DevProcess {
	t.Helper()
	own := []string{BuildAgora(t, ""), "dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "127.0.0.1:0", "--p2p-addr", "127.0.0.1:0"}
	d := &DevProcess{proc: servers.Process{Argv: slices.Concat(own, flags), Log: filepath.Join(t.TempDir(), "dev.log")}}
	if err := d.proc.Start(); err != nil {
		t.Fatalf("start agora dev: %v", err)
	}
	t.Cleanup(func() {
		if err := d.proc.End(await.Long); err != nil {
			t.Errorf("end agora dev: %v\n%s", err, d.proc.Tail(15))
		}
		d.proc.Kill()
	})
	ready := func() bool { urls, _ := d.edges(); return len(urls) > 0 || !d.proc.Running() }
	if await.Within(await.Long, ready); !d.proc.Running() || !ready() {
		t.Fatalf("agora dev is not ready:\n%s", d.proc.Tail(15))
	}
	d.URLs, d.GRPC = d.edges()
	return d
}

// edges returns the addresses that it has said; they are written at once.
func (d *DevProcess) edges() (urls, grpc []string) {
	b, err := os.ReadFile(d.proc.Log)
	if err != nil {
		return nil, nil
	}
	for _, m := range devEdge.FindAllSubmatch(b, -1) {
		urls, grpc = append(urls, "http"+string(m[1])), append(grpc, string(m[2]))
	}
	return urls, grpc
}
