package serve

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/cmd/agora/porttest"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
)

// frames opens a connection with HTTP/2's preface, and first says something else.
func frames(t *testing.T, p *port, before string, settings ...http2.Setting) *porttest.H2 {
	t.Helper()
	c := raw(t, p, before+http2.ClientPreface)
	h := &porttest.H2{T: t, Conn: c, Framer: http2.NewFramer(c, c)}
	h.Head = hpack.NewEncoder(&h.Block)
	h.Back = hpack.NewDecoder(4096, func(f hpack.HeaderField) {
		if f.Name == ":status" {
			h.Said = f.Value
		}
	})
	if err := h.WriteSettings(settings...); err != nil {
		t.Fatal(err)
	}
	return h
}

func TestOnePortSpeaksEveryHTTP(t *testing.T) {
	t.Parallel()
	certs := servers.NewCertificates(t)
	plain := opened(t, portConfig{http2: true})
	secure := opened(t, portConfig{http2: true, tls: config.TLS{Cert: certs.ServerCert, Key: certs.ServerKey}})
	private := opened(t, portConfig{tls: config.TLS{Cert: certs.ServerCert, Key: certs.ServerKey}})
	for _, c := range []struct {
		about  string
		port   *port
		speaks *http.Protocols
		want   string
	}{
		{"without TLS", plain, porttest.Protocols((*http.Protocols).SetHTTP1), "HTTP/1.1"},
		{"without TLS, by prior knowledge", plain, porttest.Protocols((*http.Protocols).SetUnencryptedHTTP2), "HTTP/2.0"},
		{"TLS, to who knows no other", secure, porttest.Protocols((*http.Protocols).SetHTTP1), "HTTP/1.1"},
		{"TLS, to who knows both", secure, porttest.Protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2), "HTTP/2.0"},
		{"where operators ask", private, porttest.Protocols((*http.Protocols).SetHTTP1, (*http.Protocols).SetHTTP2), "HTTP/1.1"},
	} {
		tr := &http.Transport{Protocols: c.speaks, TLSClientConfig: porttest.Trusting(t, certs.CA), DisableKeepAlives: true}
		r, err := (&http.Client{Transport: tr}).Get(c.port.url("http") + "/ws")
		if err != nil {
			t.Errorf("%s: %v", c.about, err)
			continue
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if string(b) != "hello" || err != nil || r.Proto != c.want {
			t.Errorf("%s: %s %q, %v, want %s", c.about, r.Proto, b, err, c.want)
		}
	}
}

func TestWhoComesByAProxyMaySpeakHTTP2(t *testing.T) {
	t.Parallel()
	trusted := new(edge.Proxies)
	trusted.Set([]netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")})
	p := opened(t, portConfig{http2: true, proxies: trusted})
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.RemoteAddr) }))
	var head bytes.Buffer
	from := &net.TCPAddr{IP: net.ParseIP("192.0.2.7"), Port: 4711}
	if _, err := proxyproto.HeaderProxyFromAddrs(2, from, from).WriteTo(&head); err != nil {
		t.Fatal(err)
	}
	h := frames(t, p, head.String())
	if err := h.Ask(1); err != nil {
		t.Fatal(err)
	}
	f, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameData })
	if err != nil || string(f.(*http2.DataFrame).Data()) != from.String() {
		t.Errorf("answered %v, %v, want the client's address", f, err)
	}
	if c := raw(t, p, http2.ClientPreface); porttest.Answer(c) == http.StatusOK {
		t.Error("without the proxy's header it is answered")
	}
}

// waiting is a port whose requests wait until the test ends; it counts those that do at a time, and the most of them.
func waiting(t *testing.T, cfg portConfig) (p *port, now, most *atomic.Int64) {
	t.Helper()
	p, now, most = opened(t, cfg), new(atomic.Int64), new(atomic.Int64)
	over, stop := context.WithCancel(context.Background())
	t.Cleanup(stop)
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		n := now.Add(1)
		defer now.Add(-1)
		for was := most.Load(); n > was && !most.CompareAndSwap(was, n); was = most.Load() {
		}
		<-over.Done() // whether its peer is there or not
	}))
	return p, now, most
}

func TestStreamsOfAConnectionAreBounded(t *testing.T) {
	t.Parallel()
	p, now, _ := waiting(t, portConfig{http2: true})
	h := frames(t, p, "")
	for k := range uint32(streams) {
		if err := h.Ask(2*k + 1); err != nil {
			t.Fatal(err)
		}
	}
	await.True(t, "all of them are at work", func() bool { return now.Load() == streams })
	if err := h.Ask(2*streams + 1); err != nil {
		t.Fatal(err)
	}
	f, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream })
	if err != nil || f.Header().StreamID != 2*streams+1 {
		t.Errorf("one more is answered with %v, %v, want a reset", f, err)
	}
}

func TestWhoResetsStreamsAsFastAsItOpensThemIsCutOff(t *testing.T) {
	t.Parallel()
	p, _, most := waiting(t, portConfig{http2: true})
	h := frames(t, p, "")
	go func() { // until it is cut off
		for k := uint32(0); ; k++ {
			if h.Ask(2*k+1) != nil || h.WriteRSTStream(2*k+1, http2.ErrCodeCancel) != nil {
				return
			}
		}
	}()
	why := h.Ends()
	if most.Load() > streams {
		t.Errorf("%d requests of one connection are at work, want %d at most", most.Load(), streams)
	}
	if why != http2.ErrCodeEnhanceYourCalm && why != http2.ErrCodeNo {
		t.Errorf("told %v", why)
	}
	if p.faults.Load() == 0 {
		t.Error("it is not counted")
	}
}

func TestAFloodOfHeadersOverHTTP2IsCutOff(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true, maxHeader: 4 << 10})
	h := frames(t, p, "")
	part := strings.Repeat("x", 2<<10)
	if err := h.Ask(1, "x-one", part, "x-two", part, "x-three", part); err != nil {
		t.Fatal(err)
	}
	if status := h.Status(); status != "431" {
		t.Errorf("a large header: %s, want 431", status)
	}
	h = frames(t, p, "")
	h.Ask(1, "x-large", strings.Repeat("x", 12<<10))
	h.Ends()
	h = frames(t, p, "")
	if err := h.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: h.Fields("/ws")}); err != nil {
		t.Fatal(err)
	}
	go func() { // that never end
		for k := 0; ; k++ {
			h.Block.Reset()
			h.Head.WriteField(hpack.HeaderField{Name: "x", Value: fmt.Sprint(k), Sensitive: true})
			if h.WriteContinuation(1, false, h.Block.Bytes()) != nil {
				return
			}
		}
	}()
	h.Ends()
}

func TestWhoeverIsSlowToBeginWithHTTP2IsCutOff(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true, readHeader: 100 * time.Millisecond})
	for _, begun := range []string{"PRI", http2.ClientPreface[:20], http2.ClientPreface} {
		c := raw(t, p, "")
		io.WriteString(c, begun) // a busy machine may be cut off before
		if _, err := io.Copy(io.Discard, c); err != nil {
			if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
				t.Errorf("with %q it is not cut off", begun)
			}
		}
	}
}

// Connections that speak HTTP/2 and ask for nothing, stop within a header, or ask for what nobody is let in for and
// don't read the answer, are pending like all others: they keep nobody out.
func TestIdleConnectionsOfHTTP2AreClosedWhereAPortIsFull(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true})
	p.listener.Resize(9, 100*time.Millisecond)
	admitted := frames(t, p, "")
	waits := make(chan struct{})
	t.Cleanup(func() { close(waits) })
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/lasts" {
			p.admitted(r.Context())
			w.WriteHeader(200)
			w.(http.Flusher).Flush()
			select {
			case <-waits:
			case <-r.Context().Done():
			}
			return
		}
		fmt.Fprint(w, strings.Repeat("x", 1000))
	}))
	if err := admitted.AskFor(1, "/lasts"); err != nil {
		t.Fatal(err)
	}
	if status := admitted.Status(); status != "200" {
		t.Fatalf("answered %s", status)
	}
	var slow []*porttest.H2
	for range 10 {
		idle, half, closed := frames(t, p, ""), frames(t, p, ""), frames(t, p, "", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
		half.WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: half.Fields("/ws")})
		closed.Ask(1)
		slow = append(slow, idle, half, closed)
	}
	c := raw(t, p, hello+"\r\n")
	if status := porttest.Answer(c); status != http.StatusOK {
		t.Errorf("in a crowd of those who say nothing a request is answered %d, want 200", status)
	}
	slow[0].Ends()
	slow[1].Ends()
	slow[2].Ends()
	if err := admitted.WritePing(false, [8]byte{1}); err != nil {
		t.Fatal(err)
	}
	if _, err := admitted.Until(func(f http2.Frame) bool {
		return f.Header().Type == http2.FramePing && f.Header().Flags.Has(http2.FlagPingAck)
	}); err != nil {
		t.Errorf("one that was let in is shown out: %v", err)
	}
	if n := p.listener.Pending(); n > 9 {
		t.Errorf("%d are pending, want 9 at most", n)
	}
}

func TestAnAnswerOverHTTP2ThatIsNotReadIsReset(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true, write: 50 * time.Millisecond})
	h := frames(t, p, "", http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0})
	if err := h.Ask(1); err != nil {
		t.Fatal(err)
	}
	if _, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameRSTStream }); err != nil {
		t.Errorf("it is not reset: %v", err)
	}
}

func TestWhoNamesTwoHostsIsAmbiguousOverHTTP2(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true})
	h := frames(t, p, "")
	for k, c := range []struct{ host, status string }{{"evil.example", "400"}, {"a", "200"}} {
		if err := h.Ask(uint32(2*k+1), "host", c.host); err != nil {
			t.Fatal(err)
		}
		if status := h.Status(); status != c.status {
			t.Errorf("host %s: %s, want %s", c.host, status, c.status)
		}
	}
}

func TestClientsGoElsewhereWithTheirNextRequestOnceThePortDrains(t *testing.T) {
	t.Parallel()
	p := opened(t, portConfig{http2: true})
	h := frames(t, p, "")
	p.drain()
	if err := h.Ask(1); err != nil {
		t.Fatal(err)
	}
	if status := h.Status(); status != "200" {
		t.Errorf("a request that was on its way: %s, want 200", status)
	}
	if why := h.Ends(); why != http2.ErrCodeNo {
		t.Errorf("told %v, want no error", why)
	}
	c := raw(t, p, hello+"\r\n")
	if status := porttest.Answer(c); status != 200 {
		t.Errorf("over HTTP/1.1: %d", status)
	}
	porttest.Gone(t, c)
}

func TestACertificateCountsOverHTTP2(t *testing.T) {
	t.Parallel()
	certs := servers.NewCertificates(t)
	p := opened(t, portConfig{http2: true, tls: config.TLS{Cert: certs.ServerCert, Key: certs.ServerKey, ClientCA: certs.CA}})
	p.serve(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, r.Proto, " ", r.TLS != nil && len(r.TLS.VerifiedChains) == 1)
	}))
	for _, c := range []struct {
		cfg  *tls.Config
		want string
	}{{porttest.Trusting(t, certs.CA), "HTTP/2.0 false"}, {porttest.Trusting(t, certs.CA, certs.ClientCert, certs.ClientKey), "HTTP/2.0 true"}} {
		tr := &http.Transport{Protocols: porttest.Protocols((*http.Protocols).SetHTTP2), TLSClientConfig: c.cfg, DisableKeepAlives: true}
		r, err := (&http.Client{Transport: tr}).Get(p.url("http") + "/")
		if err != nil {
			t.Fatal(err)
		}
		b, err := io.ReadAll(r.Body)
		r.Body.Close()
		if string(b) != c.want || err != nil {
			t.Errorf("answered %q, %v, want %q", b, err, c.want)
		}
	}
}
