package main

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"

	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/p2phost"
)

// Whatever shows edges who a sidecar is, its own port is for those whom the cluster lets speak to its agent.
func TestASidecarsPortIsForWhomTheClusterLets(t *testing.T) {
	t.Parallel()
	agent := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/card" {
			io.WriteString(w, `{"name":"localhost","skills":[{"name":"greet","path":"/greet"}]}`)
			return
		}
		io.WriteString(w, `{"ran":true}`)
	}))
	t.Cleanup(agent.Close)
	f := startFort(t)
	free := startDev(t)
	token := []string{"--token-file", file(t, f.jane+"\n"), "--ca", f.certs.CA}
	certificate := []string{"--client-cert", f.certs.ClientCert, "--client-key", f.certs.ClientKey, "--ca", f.certs.CA}
	for about, c := range map[string]struct {
		url, id, from string
		auth          []string
		closed        bool
	}{
		"none": {free.public[0], "anybody", "bob", nil, false}, "file": {f.address, "jane", "jane/laptop", token, true}, "mtls": {f.address, "localhost", "jane/phone", certificate, true},
	} {
		t.Run(about, func(t *testing.T) {
			t.Parallel()
			v := &verbs{t: t, url: c.url}
			ctx, signal := context.WithCancel(t.Context())
			side := v.start(ctx, nil, append([]string{"sidecar", "--agent-url", agent.URL, "--id", c.id}, c.auth...)...)
			defer side.wait()
			defer signal()
			h := door{t, newPeer(t)}
			var at peer.AddrInfo
			await.True(t, "the directory shows the peer", func() bool {
				var shown struct{ Addresses []string }
				out := v.run("", append([]string{"agent", c.id, "--json"}, c.auth...)...).stdout
				if json.Unmarshal([]byte(out), &shown) != nil || len(shown.Addresses) == 0 {
					return false
				}
				info, err := peer.AddrInfoFromString(shown.Addresses[0])
				if err != nil || strings.Contains(shown.Addresses[0], "p2p-circuit") || !strings.HasPrefix(shown.Addresses[0], "/ip4/127.0.0.1/") {
					t.Fatalf("the agent is shown at %q", shown.Addresses)
				}
				at = *info
				return true
			})
			for p, want := range map[string]string{"/ai-agent/handoff/1.0.0": `{"ran":true}`, "/ai-agent/card/1.0.0": `"greet"`} {
				if got := h.asks(at, protocol.ID(p), `{"method":"GET","path":"/greet"}`); c.closed != strings.Contains(got, `"code":403`) || c.closed == strings.Contains(got, want) {
					t.Errorf("a stranger is answered %s at %s", got, p)
				}
			}
			asks := []string{"handoff", "--from", c.from, "--to", c.id, "GET", "/greet"}
			if c.auth != nil {
				asks = append(asks, token...)
			}
			r := v.run("", asks...)
			if !strings.Contains(r.stdout, `"ran":true`) {
				t.Errorf("whom the cluster lets is answered %+v", r)
			}
		})
	}
}

// newPeer makes a peer that nobody knows, and that ends with the test.
func newPeer(t *testing.T) *p2phost.Host {
	t.Helper()
	key, err := p2phost.NewKey()
	if err != nil {
		t.Fatal(err)
	}
	h, err := p2phost.New(p2phost.Config{Key: key})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { h.Close() })
	return h
}

// door is a peer before a door of libp2p.
type door struct {
	t    *testing.T
	peer *p2phost.Host
}

// asks asks the one who is at an address by a protocol, and returns the answer.
func (d door) asks(at peer.AddrInfo, p protocol.ID, request string) string {
	d.t.Helper()
	ctx := await.Context(d.t)
	if err := d.peer.Connect(ctx, at); err != nil {
		d.t.Fatal(err)
	}
	s, err := d.peer.NewStream(ctx, at.ID, p)
	if err != nil {
		d.t.Fatal(err)
	}
	defer s.Close()
	_ = s.SetDeadline(time.Now().Add(await.Long))
	if _, err := io.WriteString(s, request); err != nil {
		d.t.Fatal(err)
	}
	b, err := io.ReadAll(s)
	if err != nil {
		d.t.Fatalf("%q and then %v", b, err)
	}
	return string(b)
}
