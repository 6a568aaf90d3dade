package main

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"crypto/tls"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-jose/go-jose/v4"
	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/access"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/edge/auth"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	"github.com/agora-relay/agora/wire"
)

// fort is a cluster that takes tokens of a file, signed ones and certificates, with TLS.
type fort struct {
	*dev
	certs         servers.Certificates
	jane          string // token of the file, for jane and jane/*
	key           ed25519.PrivateKey
	tokens, list  string // the file of tokens, and that of what is revoked
	keys          string // the file of the keys that sign tokens
	host, address string
}

func startFort(t *testing.T, args ...string) *fort {
	t.Helper()
	f := &fort{certs: servers.NewCertificates(t)}
	token, line, err := auth.NewToken(auth.Line{Name: "jane", Agents: []string{"jane", "jane/*"}})
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	f.jane, f.tokens, f.list, f.keys = token, filepath.Join(dir, "tokens"), filepath.Join(dir, "revoked"), filepath.Join(dir, "keys")
	f.rotate(t)
	for path, text := range map[string]string{f.tokens: line, f.list: "# nobody\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f.dev = startDev(t, append([]string{
		"--auth", "file:" + f.tokens + ",jwt,mtls", "--auth.jwt.jwks", f.keys, "--auth.jwt.audience", "agora",
		"--auth.revoked", f.list, "--tls.cert", f.certs.ServerCert, "--tls.key", f.certs.ServerKey, "--tls.client-ca", f.certs.CA,
		"--log.level", "debug", "--auth.jwt.leeway", "0s",
	}, args...)...)
	f.address = f.public[0]
	u, err := url.Parse(f.address)
	if err != nil {
		t.Fatal(err)
	}
	f.host = u.Host
	return f
}

// rotate has another key sign tokens from now on, and the one before be known no more.
func (f *fort) rotate(t *testing.T) {
	t.Helper()
	public, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	keys, err := json.Marshal(jose.JSONWebKeySet{Keys: []jose.JSONWebKey{{Key: public, KeyID: "k"}}})
	if err == nil {
		err = os.WriteFile(f.keys, keys, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
	f.key = key
}

// signed returns a token for an agent, that ends.
func (f *fort) signed(t *testing.T, sub, id string, ends time.Time) string {
	t.Helper()
	signing, err := jose.NewSigner(jose.SigningKey{Algorithm: jose.EdDSA, Key: f.key}, (&jose.SignerOptions{}).WithHeader("kid", "k"))
	if err != nil {
		t.Fatal(err)
	}
	signed, err := signing.Sign(fmt.Appendf(nil, `{"sub":%q,"jti":%q,"aud":"agora","iat":%d,"exp":%d}`, sub, id, time.Now().Unix(), ends.Unix()))
	if err != nil {
		t.Fatal(err)
	}
	token, err := signed.CompactSerialize()
	if err != nil {
		t.Fatal(err)
	}
	return token
}

// open tries to connect with a query and a token in the header; either may be empty.
func (f *fort) open(t *testing.T, query, token string, own ...string) (*agent, int) {
	t.Helper()
	d := websocket.Dialer{TLSClientConfig: porttest.Trusting(t, f.certs.CA, own...)}
	h := http.Header{}
	if token != "" {
		h.Set("Authorization", "Bearer "+token)
	}
	c, r, err := d.Dial(f.address+query, h)
	if err != nil {
		if r == nil {
			t.Fatal(err)
		}
		return nil, r.StatusCode
	}
	t.Cleanup(func() { c.Close() })
	c.SetReadDeadline(time.Now().Add(await.Long))
	return &agent{t, c}, 101
}

// awaits returns the next frame of a type, and passes over others but errors.
func (a *agent) awaits(typ string) (f wire.Frame) {
	a.t.Helper()
	for {
		_, b, err := a.ReadMessage()
		if err != nil {
			a.t.Fatalf("waiting for %s: %v", typ, err)
		}
		if err := wire.DecodeAnswer(b, &f); err != nil {
			a.t.Fatal(err)
		}
		if f.Type == typ {
			return f
		}
		if f.Type == "error" {
			a.t.Fatalf("heard %s, want %s", b, typ)
		}
	}
}

// dismissed wants the connection to be told UNAUTHORIZED, and closed with 1008.
func (a *agent) dismissed() {
	a.t.Helper()
	if f := a.awaits("error"); f.Code != "UNAUTHORIZED" {
		a.t.Errorf("told %s, want UNAUTHORIZED", f.Code)
	}
	if _, _, err := a.ReadMessage(); !websocket.IsCloseError(err, 1008) {
		a.t.Errorf("closed with %v, want 1008", err)
	}
}

// asks sends a handshake as it stands, and returns the status of the answer and its text.
func (f *fort) asks(t *testing.T, line string, headers ...string) (int, string) {
	t.Helper()
	c, err := tls.Dial("tcp", f.host, porttest.Trusting(t, f.certs.CA))
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	c.SetDeadline(time.Now().Add(await.Long))
	head := line + " HTTP/1.1\r\nHost: " + f.host + "\r\nConnection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n"
	if _, err := io.WriteString(c, head+strings.Join(append(headers, "\r\n"), "\r\n")); err != nil {
		t.Fatal(err)
	}
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0, ""
	}
	defer r.Body.Close()
	if r.StatusCode == http.StatusSwitchingProtocols {
		return r.StatusCode, ""
	}
	b, err := io.ReadAll(io.LimitReader(r.Body, 1<<16))
	if err != nil && len(b) == 0 {
		t.Fatal(err)
	}
	if r.StatusCode == http.StatusRequestHeaderFieldsTooLarge {
		porttest.Gone(t, c)
	}
	return r.StatusCode, string(b)
}

func TestHandshakesOfAttackersAreRefusedWithTheRightStatus(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	bearer := "Authorization: Bearer " + f.jane
	expired := f.signed(t, "joe", "1", time.Now().Add(-time.Minute))
	none := base64.RawURLEncoding.EncodeToString([]byte(`{"alg":"none"}`)) + "." + strings.Split(expired, ".")[1] + "."
	for about, c := range map[string]struct {
		line    string
		headers []string
		want    int
	}{
		"a good token":                        {"GET /ws", []string{bearer}, 101},
		"a good token in the URL":             {"GET /ws?token=" + f.jane, nil, 101},
		"no token":                            {"GET /ws", nil, 401},
		"a bad token":                         {"GET /ws?token=guess", nil, 401},
		"an expired one":                      {"GET /ws?token=" + expired, nil, 401},
		"one that nobody signed":              {"GET /ws", []string{"Authorization: Bearer " + none}, 401},
		"a bad one before a good one":         {"GET /ws?token=" + f.jane, []string{"Authorization: Bearer guess"}, 401},
		"an empty one before a good one":      {"GET /ws?token=" + f.jane, []string{"Authorization: Bearer "}, 401},
		"a good one, a bad one in the URL":    {"GET /ws?token=guess", []string{bearer}, 101},
		"two in headers":                      {"GET /ws", []string{bearer, bearer}, 400},
		"two in headers, other spelling":      {"GET /ws", []string{bearer, "aUTHORIZATION: Bearer guess"}, 400},
		"two in the URL":                      {"GET /ws?token=guess&token=" + f.jane, nil, 400},
		"two ids":                             {"GET /ws?agent_id=jane&agent_id=joe", []string{bearer}, 400},
		"a query that is none":                {"GET /ws?token=guess;token=" + f.jane, nil, 400},
		"a query that is badly escaped":       {"GET /ws?agent_id=%zz", []string{bearer}, 400},
		"two in one header":                   {"GET /ws", []string{bearer + ", Bearer guess"}, 401},
		"one in a folded line of another":     {"GET /ws", []string{"X-Any: a", " " + bearer}, 401},
		"a token that is folded":              {"GET /ws", []string{bearer[:40], " " + bearer[40:]}, 401},
		"a space before the colon":            {"GET /ws", []string{"Authorization : Bearer " + f.jane}, 400},
		"a length, and chunks":                {"GET /ws", []string{bearer, "Content-Length: 4", "Transfer-Encoding: chunked"}, 400},
		"chunks":                              {"GET /ws", []string{bearer, "Transfer-Encoding: chunked"}, 400},
		"a body":                              {"GET /ws", []string{bearer, "Content-Length: 5"}, 400},
		"two slashes":                         {"GET //ws", []string{bearer}, 400},
		"a way up":                            {"GET /ws/..", []string{bearer}, 400},
		"a way up, escaped":                   {"GET /x/%2e%2e/ws", []string{bearer}, 400},
		"below":                               {"GET /ws/", []string{bearer}, 404},
		"other capitals":                      {"GET /WS", []string{bearer}, 404},
		"what operators ask":                  {"GET /metrics", []string{bearer}, 404},
		"what debuggers ask":                  {"GET /debug/pprof/", []string{bearer}, 404},
		"another method":                      {"POST /ws", []string{bearer}, 405},
		"a page of another site":              {"GET /ws", []string{bearer, "Origin: https://evil.example"}, 403},
		"a page of nowhere":                   {"GET /ws", []string{bearer, "Origin: null"}, 403},
		"a page that hides another":           {"GET /ws", []string{bearer, "Origin: https://" + f.host + ".evil.example"}, 403},
		"two origins":                         {"GET /ws", []string{bearer, "Origin: https://evil.example", "Origin: https://" + f.host}, 403},
		"a header that is too large":          {"GET /ws", []string{"Authorization: Bearer " + strings.Repeat("x", 64<<10)}, 431},
		"a token that is too large":           {"GET /ws", []string{"Authorization: Bearer " + strings.Repeat("x", 20<<10)}, 401},
		"a token of another kind of password": {"GET /ws", []string{"Authorization: Basic " + f.jane}, 401},
	} {
		status, text := f.asks(t, c.line, c.headers...)
		if status != c.want && !(about == "two origins" && status == 400) {
			t.Errorf("%s: %d %s, want %d", about, status, text, c.want)
		}
		for _, internal := range []string{".go:", "goroutine", "panic", "/root/", "jose", "x509", f.jane, f.tokens} {
			if strings.Contains(text, internal) {
				t.Errorf("%s: the answer shows %q", about, internal)
			}
		}
	}
	f.leaksNothing(t, f.jane, expired, none)
}

// leaksNothing wants the log to have none of the tokens.
func (f *fort) leaksNothing(t *testing.T, tokens ...string) {
	t.Helper()
	for _, token := range tokens {
		if i := strings.Index(f.stderr.String(), token[:len(token)*3/4]); i >= 0 {
			t.Errorf("the log shows a token: %.200s", f.stderr.String()[max(0, i-100):])
		}
	}
}

func TestNobodyIsAnotherByWhatItSays(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	joe := f.signed(t, "joe", "1", time.Now().Add(time.Hour))
	victim, _ := f.open(t, "?agent_id=victim", f.signed(t, "victim", "2", time.Now().Add(time.Hour)))
	victim.awaits("agent.registered")
	for _, id := range []string{"victim", "jane", "joe ", "Joe", "joe*", "*"} {
		want := "FORBIDDEN"
		if id == "joe " {
			want = "INVALID_REQUEST" // no id ends in a space
		}
		a, _ := f.open(t, "", joe)
		a.say(`{"type":"agent.register","agent":{"id":` + agoratest.Quote(id) + `},"resume_token":"guess.guess"}`)
		if e := a.awaits("error"); e.Code != want {
			t.Errorf("joe as %q: %s, want %s", id, e.Code, want)
		}
		b, _ := f.open(t, "?agent_id="+url.QueryEscape(id), joe)
		if e := b.awaits("error"); e.Code != want {
			t.Errorf("joe as %q by the URL: %s, want %s", id, e.Code, want)
		}
	}
	a, _ := f.open(t, "?agent_id=joe", joe)
	a.awaits("agent.registered")
	a.say(`{"type":"send","to":"victim","from":"jane","agent_id":"jane","payload":{"from":"jane"}}`)
	if m := victim.awaits("message"); m.From != "joe" {
		t.Errorf("the victim is told that %q wrote, want joe", m.From)
	}
	for token, code := range map[string]string{
		f.jane: "FORBIDDEN", f.signed(t, "victim", "2", time.Now().Add(time.Hour)): "FORBIDDEN",
		f.signed(t, "joe", "3", time.Now().Add(-time.Second)): "UNAUTHORIZED", "guess": "UNAUTHORIZED", strings.Repeat("a", 16<<10): "UNAUTHORIZED",
		strings.Repeat("a", 17<<10): "INVALID_REQUEST",
	} {
		a.say(`{"type":"agent.refresh","token":"` + token + `"}`)
		if e := a.awaits("error"); e.Code != code || strings.Contains(e.Message, token) {
			t.Errorf("refreshed with another's or a bad token: %s %s, want %s", e.Code, e.Message, code)
		}
	}
	f.leaksNothing(t, f.jane, joe)
}

func TestACertificateOpensWhatItNamesAndNothingElse(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	other := servers.NewCertificates(t)
	own := []string{f.certs.ClientCert, f.certs.ClientKey} // whose name is localhost
	a, _ := f.open(t, "?agent_id=localhost", "", own...)
	a.awaits("agent.registered")
	b, _ := f.open(t, "?agent_id=jane", "", own...)
	if e := b.awaits("error"); e.Code != "FORBIDDEN" {
		t.Errorf("as another: %s, want FORBIDDEN", e.Code)
	}
	d := websocket.Dialer{TLSClientConfig: porttest.Trusting(t, f.certs.CA, other.ClientCert, other.ClientKey)}
	if _, r, err := d.Dial(f.address, nil); err == nil || r != nil && r.StatusCode == http.StatusSwitchingProtocols {
		t.Error("a certificate of another CA is let in")
	}
	if _, status := f.open(t, "", ""); status != http.StatusUnauthorized {
		t.Errorf("without a certificate: %d, want 401", status)
	}
	conn, err := net.Dial("tcp", f.host)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	conn.SetDeadline(time.Now().Add(await.Long))
	fmt.Fprintf(conn, "GET /ws HTTP/1.1\r\nHost: a\r\nAuthorization: Bearer %s\r\n\r\n", f.jane)
	if status := porttest.Answer(conn); status != http.StatusBadRequest {
		t.Errorf("without TLS: %d, want 400", status)
	}
}

func TestWhatIsRevokedIsClosedAndNotLetInAgain(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	joe := f.signed(t, "joe", "id-7", time.Now().Add(time.Hour))
	a, _ := f.open(t, "?agent_id=jane", f.jane)
	a.awaits("agent.registered")
	b, _ := f.open(t, "?agent_id=joe", joe)
	b.awaits("agent.registered")
	c, _ := f.open(t, "?agent_id=localhost", "", f.certs.ClientCert, f.certs.ClientKey)
	c.awaits("agent.registered")
	pair, err := tls.LoadX509KeyPair(f.certs.ClientCert, f.certs.ClientKey)
	if err != nil {
		t.Fatal(err)
	}
	list := fmt.Sprintf("jti id-7\nserial %x\n", pair.Leaf.SerialNumber)
	if err := os.WriteFile(f.list, []byte(list), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(f.tokens, []byte("# jane has left\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, agent := range []*agent{a, b, c} { // none of which would end by itself for an hour
		agent.dismissed()
	}
	for _, token := range []string{f.jane, joe} {
		if _, status := f.open(t, "", token); status != http.StatusUnauthorized {
			t.Errorf("replayed after it was revoked: %d, want 401", status)
		}
	}
	if _, status := f.open(t, "", "", f.certs.ClientCert, f.certs.ClientKey); status != http.StatusUnauthorized {
		t.Errorf("a revoked certificate: %d, want 401", status)
	}
}

func TestWhatAKeyOpenedIsClosedOnceTheKeyIsGone(t *testing.T) {
	t.Parallel()
	f := startFort(t)
	end := time.Now().Add(time.Hour)
	jane, _ := f.open(t, "?agent_id=jane", f.jane)
	jane.awaits("agent.registered")
	joe, _ := f.open(t, "?agent_id=joe", f.signed(t, "joe", "1", end))
	joe.awaits("agent.registered")
	jim, _ := f.open(t, "?agent_id=jim", f.signed(t, "jim", "2", end))
	jim.awaits("agent.registered")
	f.rotate(t)
	joe.dismissed()
	jim.dismissed()
	jane.say(`{"type":"list","id":"still here"}`)
	jane.awaits("agents")
	joe, _ = f.open(t, "?agent_id=joe", f.signed(t, "joe", "3", end)) // within its grace
	joe.awaits("agent.registered")
}

// TestAClientOutlivesItsTokens has one whose file is rewritten before each token ends.
func TestAClientOutlivesItsTokens(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for life := 3 * time.Second; !outlives(t, life); life *= 4 {
		if t.Logf("the connection was closed with a token of %v", life); life > await.Long {
			t.Fatal("it is not renewed in time, however much there is of it")
		}
	}
}

// outlives reports whether a client whose token ends soon continues with the next one over the same connection.
func outlives(t *testing.T, life time.Duration) bool {
	t.Helper()
	f := startFort(t)
	file := filepath.Join(t.TempDir(), "token")
	write := func(id string, end time.Time) {
		if err := os.WriteFile(file, []byte(f.signed(t, "joe", id, end)+"\n"), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	end := time.Now().Add(life)
	write("1", end)
	creds := access.Credentials{TokenFile: file, Trust: access.Trust{CA: f.certs.CA}}
	secure, err := creds.Trust.Config()
	if err != nil {
		t.Fatal(err)
	}
	c, err := client.Dial(t.Context(), client.Config{URLs: access.URLs(f.address), Agent: "joe", TokenSource: creds.Source(), TLS: secure})
	if time.Now().After(end.Add(-time.Second)) { // tokens end at whole seconds
		return false
	}
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	write("2", end.Add(time.Hour))
	await.True(t, "the first token has ended", func() bool { return time.Now().After(end.Add(time.Second)) })
	if err := c.Send(t.Context(), "joe", []byte(`"still here"`)); err != nil {
		t.Errorf("after its first token: %v", err)
	}
	return !strings.Contains(f.stderr.String(), "session ends with its credentials")
}
