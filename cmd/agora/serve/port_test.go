package serve

import (
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// opened returns a port of a configuration, whose handler says hello, until the test ends.
func opened(t *testing.T, cfg portConfig) *port {
	t.Helper()
	if cfg.readHeader == 0 {
		cfg.readHeader = await.Long
	}
	if cfg.maxHeader == 0 {
		cfg.maxHeader = 32 << 10
	}
	p, err := openPort("127.0.0.1:0", cfg, slog.New(slog.DiscardHandler), func(err error) { t.Error(err) })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.close)
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, "hello") }))
	return p
}

// raw opens a socket, and says something.
func raw(t *testing.T, p *port, text string) net.Conn {
	t.Helper()
	c, err := net.Dial("tcp", p.addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Long))
	if _, err := io.WriteString(c, text); err != nil {
		t.Fatal(err)
	}
	return c
}

const hello = "GET /ws HTTP/1.1\r\nHost: a\r\n"

func TestWhoeverIsSlowWithItsHandshakeOrHeaderIsCutOff(t *testing.T) {
	t.Parallel()
	certs := servers.NewCertificates(t)
	const limit = 100 * time.Millisecond
	plain := opened(t, portConfig{readHeader: limit})
	secure := opened(t, portConfig{readHeader: limit, tls: config.TLS{Cert: certs.ServerCert, Key: certs.ServerKey}})
	for about, c := range map[string]struct {
		port *port
		says string
	}{
		"says nothing":               {plain, ""},
		"stops within its header":    {plain, hello + "X-Slow: "},
		"never ends its header":      {plain, hello},
		"begins no handshake":        {secure, ""},
		"stops within its handshake": {secure, "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"},
	} {
		conn := raw(t, c.port, "")
		io.WriteString(conn, c.says) // a busy machine may be cut off before
		said, err := io.ReadAll(conn)
		if errors.Is(err, os.ErrDeadlineExceeded) || len(said) > 0 && !bytes.HasPrefix(said, []byte("HTTP/1.1 408 ")) {
			t.Errorf("%s: answered %q, %v", about, said, err)
		}
	}
}

func TestAHeaderIsBounded(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{maxHeader: 4 << 10})
	large, many := raw(t, p, hello+"X-Large: "+strings.Repeat("x", 16<<10)+"\r\n\r\n"), raw(t, p, hello+strings.Repeat("X-Many: x\r\n", 2000)+"\r\n")
	if status := porttest.Answer(large); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("a large header: %d, want 431", status)
	}
	if status := porttest.Answer(many); status != http.StatusRequestHeaderFieldsTooLarge {
		t.Errorf("many headers: %d, want 431", status)
	}
	porttest.Gone(t, large)
	porttest.Gone(t, many)
	if status := porttest.Answer(raw(t, p, hello+"\r\n")); status != http.StatusOK {
		t.Errorf("a plain request: %d, want 200", status)
	}
}

func TestARequestThatIsAmbiguousIsRefused(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{})
	for about, c := range map[string]struct {
		text   string
		status int
	}{
		"two slashes":              {"GET //ws HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"a way up":                 {"GET /ws/.. HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"a way up, escaped":        {"GET /ws/%2e%2e HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"here, escaped":            {"GET /%2e/ws HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"a slash, escaped":         {"GET /%2fws HTTP/1.1\r\nHost: a\r\n\r\n", 400},
		"Authorization twice":      {hello + "Authorization: Bearer a\r\nAuthorization: Bearer b\r\n\r\n", 400},
		"Host twice":               {hello + "Host: b\r\n\r\n", 400},
		"no Host":                  {"GET /ws HTTP/1.1\r\n\r\n", 400},
		"two lengths":              {hello + "Content-Length: 1\r\nContent-Length: 2\r\n\r\nx", 400},
		"a coding nobody knows":    {hello + "Transfer-Encoding: xchunked\r\n\r\n", 501},
		"a space before the colon": {hello + "Authorization : Bearer a\r\n\r\n", 400},
		"a bare CR in a value":     {hello + "X: a\rAuthorization: Bearer b\r\n\r\n", 400},
		"a NUL in a value":         {hello + "X: a\x00\r\n\r\n", 400},
		"no HTTP":                  {"\x16\x03\x01\r\n\r\n", 400},
		"a plain one":              {hello + "\r\n", 200},
	} {
		if status := porttest.Answer(raw(t, p, c.text)); status != c.status {
			t.Errorf("%s: %d, want %d", about, status, c.status)
		}
	}
}

func TestAFullPortClosesWhoHasWaitedLongestAndServesTheOthers(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{})
	p.listener.Resize(8, 100*time.Millisecond)
	var slow []net.Conn
	for range 50 {
		slow = append(slow, raw(t, p, "GET /"))
	}
	c := raw(t, p, hello+"\r\n") // kept open: it waits again, as one between two requests
	if status := porttest.Answer(c); status != http.StatusOK {
		t.Errorf("in a crowd of those who say nothing a request is answered %d, want 200", status)
	}
	if status := porttest.Answer(slow[0]); status != 0 {
		t.Errorf("who had waited longest is answered %d, want an end", status)
	}
	if n := p.listener.Pending(); n > 8 {
		t.Errorf("%d are pending, want 8 at most", n)
	}
}

// status asks a port over TLS, and returns what it answers; 0 when it does not get that far.
func status(t *testing.T, p *port, c *tls.Config) int {
	t.Helper()
	conn, err := tls.Dial("tcp", p.addr(), c)
	if err != nil {
		return 0
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Long))
	if _, err := io.WriteString(conn, hello+"\r\n"); err != nil {
		return 0
	}
	return porttest.Answer(conn)
}

func TestCertificatesAndCAsAreReadAgainWhenTheyChange(t *testing.T) {
	t.Parallel()
	before, now := servers.NewCertificates(t), servers.NewCertificates(t)
	dir := t.TempDir()
	files := config.TLS{Cert: dir + "/cert", Key: dir + "/key", ClientCA: dir + "/ca"}
	replace := func(with servers.Certificates) {
		porttest.CopyFile(t, with.ServerCert, files.Cert)
		porttest.CopyFile(t, with.ServerKey, files.Key)
		porttest.CopyFile(t, with.CA, files.ClientCA)
	}
	replace(before)
	public := opened(t, portConfig{tls: files})
	private := opened(t, portConfig{tls: files, needPeer: true})
	old, own := porttest.Trusting(t, before.CA), porttest.Trusting(t, before.CA, before.ClientCert, before.ClientKey)
	for _, c := range []struct {
		about  string
		port   *port
		client *tls.Config
		want   int
	}{
		{"no certificate where agents connect", public, old, 200}, {"a certificate there", public, own, 200},
		{"no certificate where operators ask", private, old, 0}, {"a certificate there", private, own, 200},
		{"a certificate of another CA", public, porttest.Trusting(t, before.CA, now.ClientCert, now.ClientKey), 0},
		{"another server's CA", public, porttest.Trusting(t, now.CA), 0},
	} {
		if got := status(t, c.port, c.client); got != c.want {
			t.Errorf("%s: %d, want %d", c.about, got, c.want)
		}
	}
	replace(now)
	fresh := porttest.Trusting(t, now.CA, now.ClientCert, now.ClientKey)
	await.True(t, "the new certificate is there", func() bool { return status(t, public, fresh) == 200 && status(t, private, fresh) == 200 })
	if got := status(t, public, porttest.Trusting(t, now.CA, before.ClientCert, before.ClientKey)); got != 0 {
		t.Errorf("a certificate of the old CA is answered %d, want an end", got)
	}
	if err := os.WriteFile(files.Cert, []byte("half a cer"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := public.certs.Look(); err == nil {
		t.Error("half a certificate is taken")
	}
	if got := status(t, public, fresh); got != 200 {
		t.Errorf("with a file that can't be read: %d, want 200", got)
	}
}
