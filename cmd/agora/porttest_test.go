package main

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

// prefaced opens a connection to a gRPC port, says something first, and then HTTP/2's preface.
func prefaced(t *testing.T, at string, before ...byte) *h2 {
	t.Helper()
	c, err := net.Dial("tcp", at)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetDeadline(time.Now().Add(await.Long))
	h := &h2{t: t, Conn: c, Framer: http2.NewFramer(c, c)}
	_, err = io.WriteString(c, string(before)+http2.ClientPreface)
	if err == nil {
		err = h.WriteSettings()
	}
	if err != nil {
		t.Fatal(err)
	}
	return h
}

// served waits until the server has taken the connection: one that is still in its queue when it ends is reset.
func (h *h2) served() {
	h.t.Helper()
	if _, err := h.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameSettings }); err != nil {
		h.t.Fatalf("the connection is not taken: %v", err)
	}
}

// goesAway waits until the server has it go elsewhere, without an error, and goes.
func (h *h2) goesAway() {
	h.t.Helper()
	f, err := h.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameGoAway })
	if err != nil || f.(*http2.GoAwayFrame).ErrCode != http2.ErrCodeNo {
		h.t.Errorf("it is told %v, %v, want to go elsewhere", f, err)
	}
	h.Close()
}

// cut wants the server to close a connection.
func (h *h2) cut() {
	h.t.Helper()
	_, err := io.Copy(io.Discard, h.Conn)
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		h.t.Error("it is not cut off")
	}
}

// h2 is a connection that speaks frames of HTTP/2 as a test likes.
type h2 struct {
	t testing.TB
	net.Conn
	*http2.Framer
	block bytes.Buffer
	head  *hpack.Encoder
	back  *hpack.Decoder // of the server's headers
	said  string         // the last :status
}

// fields returns the header of a GET of a path, and more fields by name and value.
func (h *h2) fields(path string, more ...string) []byte {
	h.block.Reset()
	all := append([]string{":method", "GET", ":scheme", "http", ":authority", "a", ":path", path}, more...)
	for k := 0; k < len(all); k += 2 {
		if err := h.head.WriteField(hpack.HeaderField{Name: all[k], Value: all[k+1]}); err != nil {
			h.t.Fatal(err)
		}
	}
	return bytes.Clone(h.block.Bytes())
}

// ask sends a request on a stream.
func (h *h2) ask(stream uint32, more ...string) error { return h.askFor(stream, "/ws", more...) }

func (h *h2) askFor(stream uint32, path string, more ...string) error {
	return h.WriteHeaders(http2.HeadersFrameParam{StreamID: stream, BlockFragment: h.fields(path, more...), EndHeaders: true, EndStream: true})
}

// until reads frames until one is wanted, and returns it.
func (h *h2) until(want func(http2.Frame) bool) (http2.Frame, error) {
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

// status returns the status of the next answer.
func (h *h2) status() string {
	h.t.Helper()
	f, err := h.until(func(f http2.Frame) bool { return f.Header().Type == http2.FrameHeaders })
	if err == nil {
		_, err = h.back.Write(f.(*http2.HeadersFrame).HeaderBlockFragment())
	}
	if err != nil {
		h.t.Fatal(err)
	}
	return h.said
}

// ends wants the server to end the connection, and returns what it says of why.
func (h *h2) ends() (why http2.ErrCode) {
	h.t.Helper()
	_, err := h.until(func(f http2.Frame) bool {
		if g, ok := f.(*http2.GoAwayFrame); ok {
			why = g.ErrCode
		}
		return false
	})
	if ne, ok := errors.AsType[net.Error](err); ok && ne.Timeout() {
		h.t.Error("the connection is not ended")
	}
	return why
}

func protocols(set ...func(*http.Protocols, bool)) *http.Protocols {
	p := new(http.Protocols)
	for _, s := range set {
		s(p, true)
	}
	return p
}

// answer returns the status of an answer; 0 when the connection ends without one.
func answer(c net.Conn) int {
	r, err := http.ReadResponse(bufio.NewReader(c), nil)
	if err != nil {
		return 0
	}
	r.Body.Close()
	return r.StatusCode
}

// gone waits until the server has let go of a connection: of one whose header was too large, half a second after it has said so.
func gone(t *testing.T, c net.Conn) {
	t.Helper()
	await.True(t, "the server lets go of the connection", func() bool {
		_, err := c.Write([]byte("x"))
		return err != nil
	})
}

// copied replaces a file by another one's content.
func copied(t *testing.T, from, to string) {
	t.Helper()
	b, err := os.ReadFile(from)
	if err == nil {
		err = os.WriteFile(to, b, 0o600)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// trusting returns a client's settings that believe one CA, with a certificate where its files are given.
func trusting(t *testing.T, ca string, own ...string) *tls.Config {
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

// proxyHeader is a PROXY protocol header for a client at 192.0.2.7:555.
func proxyHeader(t *testing.T, version byte) string {
	t.Helper()
	h := proxyproto.HeaderProxyFromAddrs(version,
		&net.TCPAddr{IP: net.IPv4(192, 0, 2, 7), Port: 555}, &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 443})
	b, err := h.Format()
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}
