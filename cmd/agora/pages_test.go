package main

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/origintest"
)

// A browser presents its certificate with every image: what a page makes it send is refused nevertheless, and the agent
// of the certificate is not bound.
func TestACertificateOfABrowserOpensNothingToPages(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	one := &http.Transport{TLSClientConfig: porttest.Trusting(t, f.certs.CA, f.certs.ClientCert, f.certs.ClientKey)}
	two := one.Clone()
	two.ForceAttemptHTTP2 = true
	t.Cleanup(one.CloseIdleConnections)
	t.Cleanup(two.CloseIdleConnections)
	at := "https://" + f.host
	for version, c := range map[string]*http.Client{"HTTP/1.1": {Transport: one}, "HTTP/2": {Transport: two}} {
		for _, target := range []string{"/a2a/events?agent=any", "/a2a/events", "/agents", "/a2a/ws", "/"} {
			for _, p := range slices.Concat(origintest.Foreign, origintest.Unsaid) {
				if p.Host != "" {
					continue // a certificate is for this machine's names
				}
				safe := !strings.HasPrefix(target, "/a2a/events") && !strings.HasPrefix(target, "/a2a/ws")
				if slices.ContainsFunc(origintest.Unsaid, func(u origintest.Page) bool { return u.About == p.About }) && safe {
					continue
				}
				got, text := p.Ask(t, c, at, origintest.Request{Method: "GET", Target: target})
				p.Refused(t, got, version+" "+target, text)
			}
		}
		for _, p := range origintest.Programs {
			p.Headers = slices.Clone(p.Headers)
			for k, h := range p.Headers {
				p.Headers[k] = strings.ReplaceAll(h, "http://127.0.0.1:PORT", at)
			}
			if got, text := p.Ask(t, c, strings.Replace(at, "localhost", "127.0.0.1", 1), origintest.Request{Method: "GET", Target: "/agents"}); got != http.StatusOK {
				t.Errorf("%s: %s is answered %d %s, want 200", version, p.About, got, text)
			}
		}
	}
	if a, got := f.open(t, "?agent_id="+url.QueryEscape("jane/any"), f.jane); a == nil {
		t.Errorf("an agent of its own is answered %d, want it let in", got)
	}
	if b, err := (&http.Client{Transport: one}).Get(at + "/agents"); err != nil {
		t.Error(err)
	} else if b.Body.Close(); b.StatusCode != http.StatusOK {
		t.Errorf("the directory is answered %d", b.StatusCode)
	}
}

// An edge takes a page for one of its own host where either leaves the default port out.
func TestADefaultPortMakesNoOtherOrigin(t *testing.T) {
	t.Parallel()
	e := launch(t, append(backends(t), "--server.origins", "https://app.example.com:443")...).ready()
	c := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(c.CloseIdleConnections)
	at := "http" + strings.TrimSuffix(strings.TrimPrefix(e.public, "ws"), "/ws")
	for _, q := range []struct {
		want         int
		origin, host string
	}{
		{101, "https://agora.example.com", "agora.example.com"},
		{101, "https://agora.example.com", "agora.example.com:443"},
		{101, "http://agora.example.com", "agora.example.com:80"},
		{101, "https://agora.example.com:443", "agora.example.com"},
		{101, "https://Agora.example.com", "agora.example.com.:443"},
		{101, "https://app.example.com", "agora.example.com"},
		{403, "https://agora.example.com", "agora.example.com:8443"},
		{403, "https://agora.example.com", "agora.example.com:80"},
		{403, "http://app.example.com", "agora.example.com"},
		{403, "https://evil.example", "agora.example.com"},
	} {
		for _, target := range []string{"/ws", "/a2a/ws?agent=amy", "/agents"} {
			want := q.want
			if target == "/agents" && want == 101 {
				want = 200
			}
			p := origintest.Page{About: "a page of " + q.origin, Host: q.host, Headers: []string{"Origin", q.origin}}
			if got, text := p.Ask(t, c, at, origintest.Request{Method: "GET", Target: target, Headers: origintest.Handshake}); got != want && got != http.StatusConflict {
				t.Errorf("%s asks %s for %s: %d %s, want %d", p.About, q.host, target, got, text, want)
			}
		}
	}
}
