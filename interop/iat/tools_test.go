//go:build interop

package iat

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync"
	"testing"

	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

func TestCurlIsAnAgent(t *testing.T) {
	edges := start(t)
	t.Run("http1.1", func(t *testing.T) { curl("--http1.1").playsAll(t, edges) })
	t.Run("http2-prior-knowledge", func(t *testing.T) { curl("--http2-prior-knowledge").playsAll(t, edges) })
}

func TestCurlAndNghttpAreAgentsOverTLS(t *testing.T) {
	certs := servers.NewCertificates(t)
	edges := start(t, "--tls.cert", certs.ServerCert, "--tls.key", certs.ServerKey)
	t.Run("curl http2", func(t *testing.T) { curl("--http2", "--cacert", certs.CA).playsAll(t, edges) })
	t.Run("nghttp", func(t *testing.T) { asksForEvents(t, nghttp(), edges) }) // it believes any certificate
	for flag, version := range map[string]string{"--http2": "2", "--http1.1": "1.1"} {
		out, err := exec.CommandContext(t.Context(), needs(t, "curl"), "-sS", flag, "--cacert", certs.CA, "-o", "/dev/null", "-w", "%{http_version}", edges[0]+"/a2a/manifest").Output()
		if string(out) != version || err != nil {
			t.Errorf("curl %s speaks HTTP/%s: %v", flag, out, err)
		}
	}
}

func TestNghttpIsAnAgent(t *testing.T) {
	nghttp().playsAll(t, start(t))
}

// What a newcomer types.
func TestCurlHearsWhatCurlSays(t *testing.T) {
	edges := start(t)
	listens := func(*testing.T, request) []string {
		return []string{"curl", "-sSN", "--http2-prior-knowledge", edges[1] + "/a2a/events?agent=bob"}
	}
	d := tool{follow: listens}.opens(t, request{})
	said := `{"header":{"msg_id":"1","type":"notification","from":"al","to":"bob"},"metadata":{"ttl":3},"payload":{"action":"log","level":"info","message":"hi"}}`
	await.True(t, "bob is there", func() bool { // -f: as long as he is not, curl fails
		return exec.CommandContext(t.Context(), needs(t, "curl"), "-sSf", "--http2-prior-knowledge", edges[0]+"/a2a", "-d", said).Run() == nil
	})
	if e := d.next(t); e.Payload.Message != "hi" || e.Header.From != "al" || e.id == "" {
		t.Errorf("bob hears %s", e.raw)
	}
}

var ok200 = regexp.MustCompile(`:status: 200`)

// Twenty streams of one connection POST the same request: it is done once, and each of them is answered.
func TestStreamsOfOneConnectionAskTheSameOnce(t *testing.T) {
	const streams = 20
	edges, c := start(t), nghttp()
	d := c.hears(t, edges[0], "bob", "")
	once := c
	once.ask = func(t *testing.T, r request) []string {
		argv := c.ask(t, r)
		return append(argv[:len(argv)-1], "-m", fmt.Sprint(streams), r.url)
	}
	var asking sync.WaitGroup
	var a answer
	asking.Go(func() {
		a = once.posts(t, edges[1], says("al", "bob", `"msg_id":"1","type":"request"`, `{"action":"execute","query":"tidy"}`))
	})
	c.answers(t, d, edges[2])
	asking.Wait()
	if n := len(ok200.FindAllString(a.said, -1)); n != streams || len(a.parts) != streams || strings.Count(a.said, "Connected") != 1 {
		t.Errorf("%d of %d streams have the status 200, %d an envelope:\n%s", n, streams, len(a.parts), a.said)
	}
	for _, e := range a.parts {
		if e.raw != a.parts[0].raw && e.Payload.Text != "done" {
			t.Errorf("a stream is answered by %s", e.raw)
		}
	}
	wants(t, c.posts(t, edges[1], says("al", "bob", `"msg_id":"2","type":"notification"`, `{"text":"last"}`)), 202)
	if e := d.next(t); e.Payload.Text != "last" {
		t.Errorf("bob was also asked by %s", e.raw)
	}
}

// The downlinks of two agents are streams of one connection.
func TestStreamsOfOneConnectionAreDownlinks(t *testing.T) {
	edges, c := start(t), nghttp()
	two := tool{follow: func(t *testing.T, r request) []string {
		return append(c.follow(t, r), edges[0]+"/a2a/events?agent=eve")
	}}
	d := two.opens(t, request{url: edges[0] + "/a2a/events?agent=bob"})
	for _, to := range []string{"bob", "eve", "bob"} {
		await.True(t, to+" is told", func() bool {
			return c.posts(t, edges[1], says("al", to, `"msg_id":"1-`+to+`","type":"notification"`, `{}`)).status == 202
		})
	}
	got := []string{d.next(t).Header.To, d.next(t).Header.To}
	if strings.Join(got, " ") != "bob eve" {
		t.Errorf("%v have heard, want bob and then eve", got)
	}
}

// A token is shown by a header or in the envelope, where it stays.
func TestCurlShowsItsToken(t *testing.T) {
	var lines, tokens []string
	for _, id := range []string{"al", "bob"} {
		token, line, err := auth.NewToken(auth.Line{Name: id, Agents: []string{id}})
		if err != nil {
			t.Fatal(err)
		}
		lines, tokens = append(lines, line), append(tokens, token)
	}
	path := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(path, []byte(strings.Join(lines, "\n")), 0o600); err != nil {
		t.Fatal(err)
	}
	edges, nobody := start(t, "--auth", "file:"+path), curl("--http2-prior-knowledge")
	al, bob := curl("-H", "Authorization: Bearer "+tokens[0]), curl("--http2-prior-knowledge", "-H", "Authorization: Bearer "+tokens[1])
	d := bob.hears(t, edges[0], "bob", "")
	for k, meta := range []string{`{"auth_token":"bearer ` + tokens[0] + `","keep":1}`, `{"auth_token":"x"}`, `{}`} {
		body := fmt.Sprintf(`{"header":{"msg_id":"%d","type":"notification","to":"bob"},"metadata":%s,"payload":{}}`, k, meta)
		if a := nobody.posts(t, edges[1], body); k == 0 {
			wants(t, a, 202)
		} else {
			refusal{401, "UNAUTHORIZED", ""}.isIn(t, a)
		}
	}
	wants(t, al.posts(t, edges[1], says("eve", "bob", `"msg_id":"3","type":"notification"`, `{}`)), 202)
	if e := d.next(t); e.Header.From != "al" || !strings.Contains(e.raw, `"metadata":{"keep":1}`) {
		t.Errorf("bob hears %s", e.raw)
	}
	if e := d.next(t); e.Header.From != "al" { // whatever it calls itself
		t.Errorf("bob hears %s", e.raw)
	}
	refusal{401, "UNAUTHORIZED", ""}.isIn(t, nobody.asks(t, request{url: edges[2] + "/a2a/events?agent=bob"}))
}
