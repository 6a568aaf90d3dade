package main

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// peersOf returns the edges that a path of an edge names as peers of libp2p.
func peersOf(t *testing.T, url string) (ids []string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		Edges []struct {
			Peer      string `json:"peer_id"`
			Addresses []string
		}
	}
	if err := json.Unmarshal(b, &list); err != nil {
		t.Fatalf("%s: %v", b, err)
	}
	for _, e := range list.Edges {
		if len(e.Addresses) == 0 || !strings.HasSuffix(e.Addresses[0], "/p2p/"+e.Peer) {
			t.Errorf("edge %s is at %q", e.Peer, e.Addresses)
		}
		ids = append(ids, e.Peer)
	}
	return ids
}

// askedAt is where edge k of a cluster is asked over HTTP.
func askedAt(d *dev, k int) string {
	return "http" + strings.TrimSuffix(strings.TrimPrefix(d.public[k], "ws"), "/ws")
}

func TestEveryEdgeIsAPeerAndNamesTheOthers(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	d := startDev(t, "--edges", "2", "--data", dir)
	ids := peersOf(t, askedAt(d, 1)+"/p2p")
	if !strings.HasSuffix(d.peers[1], "/p2p/"+ids[0]) {
		t.Errorf("ready says that edge 1 is %q, and it is %s", d.peers[1], ids[0])
	}
	if own := peersOf(t, d.admin[1]+"/v1/p2p"); len(ids) != 2 || len(own) != 2 || own[0] != ids[0] {
		t.Errorf("edges are %q, and at the admin port %q", ids, own)
	}
	key, err := os.Stat(filepath.Join(dir, "p2p", "edge-1.key"))
	if err != nil || key.Mode().Perm() != 0o600 {
		t.Errorf("the key of edge 1 is %v, %v", key, err)
	}
	d.end(t)
	again := startDev(t, "--edges", "2", "--data", dir)
	if now := peersOf(t, askedAt(again, 1)+"/p2p"); now[0] != ids[0] {
		t.Errorf("edge 1 is %s after a restart, and was %s", now[0], ids[0])
	}
}

func TestSettingsOfPeersAreChecked(t *testing.T) {
	t.Parallel()
	for what, c := range map[string]struct {
		args []string
		say  string
	}{
		"no address":             {[]string{"--p2p-addr", "9000"}, `p2p-addr: want HOST:PORT, :PORT, /ip4/HOST/tcp/PORT or none, not "9000"`},
		"a short cluster key":    {[]string{"--p2p.cluster-key", "short"}, "p2p.cluster-key must have at least 32 characters"},
		"an address of another":  {[]string{"--p2p.announce", "example.org:9000"}, `p2p.announce: "example.org:9000" is no multiaddress`},
		"a peer that is none":    {[]string{"--p2p.allow", "anna"}, `p2p.allow: "anna" is no peer id`},
		"no circuits":            {[]string{"--p2p.relay.circuits", "0"}, "p2p.relay.circuits must be at least 1"},
		"an answer of no bytes":  {[]string{"--handoff.answer", "1"}, "handoff.answer must be at least 1KiB"},
		"others can reach it":    {[]string{"--p2p-addr", "0.0.0.0:0"}, "0.0.0.0:0 can be reached by others"},
		"a relay that is a word": {[]string{"--p2p.relay", "maybe"}, "p2p.relay"},
	} {
		args := append([]string{"dev", "--addr", "127.0.0.1:0", "--admin-addr", "127.0.0.1:0", "--grpc-addr", "none"}, c.args...)
		if status, _, stderr := command(t, args...); status == 0 || !strings.Contains(stderr, c.say) {
			t.Errorf("%s: %d, %s, want %q", what, status, stderr, c.say)
		}
	}
}
