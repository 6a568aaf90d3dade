// Package porttest is for tests that speak to ports as no client of ours does: frames of HTTP/2 one by one, headers of
// proxies, certificates of one's own.
package porttest

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/pires/go-proxyproto"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"

	"github.com/agora-relay/agora/internal/await"
)

// Prefaced opens a connection to a gRPC port, says something first, and then HTTP/2's preface.
func Prefaced(t *testing.T, at string, before ...byte) *H2 {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Long))
	h := &H2{T: t, Conn: c, Framer: http2.NewFramer(c, c)}
	_, err = io.WriteString(c, string(before)+http2.ClientPreface)
	if err == nil {
		err = h.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// Served waits until the server has taken the connection: one that is still in its queue when it ends is reset.
func (h *H2) Served() {
	h.T.Helper()
	if _, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }); err != nil {
		h.T.Fatalf("the connection is not taken: %v", err)
	}
}

// GoesAway waits until the server has it go elsewhere, without an error, and goes.
func (h *H2) GoesAway() {
	h.T.Helper()
	f, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameGoAway })
	if err != nil || f.(*http2.GoAwayFrame).ErrCode != http2.ErrCodeNo {
		h.T.Errorf("it is told %v, %v, want to go elsewhere", f, err)
	}
	h.Close()
}

// Cut wants the server to close a connection.
func (h *H2) Cut() {
	h.T.Helper()
	_, err := io.Copy(io.Discard, h.Conn)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		h.T.Error("it is not cut off")
	}
}

// H2 is a connection that speaks frames of HTTP/2 as a test likes.
type H2 struct {
	T testing.TB
	net.Conn
	*http2.Framer
	Block bytes.Buffer
	Head  *hpack.Encoder
	Back  *hpack.Decoder // of the server's headers
	Said  string         // the last :status
}

// Fields returns the header of a GET of a path, and more fields by name and value.
func (h *H2) Fields(path string, more ...string) []byte {
	h.Block.Reset()
	all := append([]string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", path}, more...)
	for k := 0; k < len(all); k += 2 {
		if err := h.Head.WriteField(hpack.HeaderField{Name: all[k], Value: all[k+1]}); err != nil {
			h.T.Fatal(err)
		}
	}
	return bytes.Clone(h.Block.Bytes())
}

// Ask sends a request on a stream.
func (h *H2) Ask(stream uint32, more ...string) error { return h.AskFor(stream, "/ws", more...) }

func (h *H2) AskFor(stream uint32, path string, more ...string) error {
	return h.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: h.Fields(path, more...), EndHeaders: true, EndStream: true})
}

// Until reads frames until one is wanted, and returns it.
func (h *H2) Until(want func(http2.Frame) bool) (http2.Frame, error) {
	for {
		f, err := h.ReadFrame()
		if err != nil {
			return nil, err
		}
		if want(f) {
			return f, nil
		}
	}
}

// Status returns the status of the next answer.
func (h *H2) Status() string {
	h.T.Helper()
	f, err := h.Until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	if err == nil {
		_, err = h.Back.Write(f.(*http2.HeadersFrame).HeaderBlockFragment())
	}
	if err != nil {
		h.T.Fatal(err)
	}
	return h.Said
}

// Ends wants the server to end the connection, and returns what it says of why.
func (h *H2) Ends() (why http2.ErrCode) {
	h.T.Helper()
	_, err := h.Until(func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			why = g.ErrCode
		}
		return false
	})
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		h.T.Error("the connection is not ended")
	}
	return why
}

func Protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	for _, s := range set {
		s(p, true)
	}
	return p
}

// Answer returns the status of an answer; 0 when the connection ends without one.
func Answer(c net.Conn) int {
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

// Gone waits until the server has let go of a connection: of one whose header was too large, half a second after it has
// said so.
func Gone(t *testing.T, c net.Conn) {
	t.Helper()
	await.True(t, "the server lets go of the connection", func() bool {
		_, err := c.Write([]byte("x"))
		return err != nil
	})
}

// CopyFile replaces a file by another one's content.
func CopyFile(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// Trusting returns a client's settings that believe one CA, with a certificate where its files are given.
func Trusting(t *testing.T, ca string, own ...string) *tls.Config {
	t.Helper()
	b, err := os.ReadFile(ca)
	if err != nil {
		t.Fatal(err)
	}
	c := &tls.Config{RootCAs: x509.NewCertPool(), ServerName: "localhost"}
	c.RootCAs.AppendCertsFromPEM(b)
	if len(own) == 2 {
		pair, err := tls.LoadX509KeyPair(own[0], own[1])
		if err != nil {
			t.Fatal(err)
		}
		c.Certificates = []tls.Certificate{pair}
	}
	return c
}

// ProxyHeader is a PROXY protocol header for a client at 192.0.2.7:555.
func ProxyHeader(t *testing.T, version byte) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version,
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 555}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443})
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
