package early_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/gorilla/websocket"

	"github.com/agora-relay/agora/internal/early"
)

func TestWhatComesWithTheHandshakeIsRead(t *testing.T) {
	for _, size := range []int{5, 100_000} {
		said := bytes.Repeat([]byte("x"), size)
		heard := make(chan []byte, 1)
		s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			u := websocket.Upgrader{}
			c, err := u.Upgrade(early.Handshake{ResponseWriter: w}, r, nil)
			if err != nil {
				t.Error(err)
				close(heard)
				return
			}
			defer c.Close()
			_, b, err := c.ReadMessage()
			if err != nil {
				t.Error(err)
			}
			heard <- b
		}))
		c, err := net.Dial("tcp", s.Listener.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		first := fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: a\r\nUpgrade: websocket\r\nConnection: Upgrade\r\n"+
			"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Version: 13\r\n\r\n")
		if _, err := c.Write(append(first, frame(said)...)); err != nil {
			t.Fatal(err)
		}
		if got := <-heard; !bytes.Equal(got, said) {
			t.Errorf("%d bytes were read, want the %d that were sent", len(got), size)
		}
		c.Close()
		s.Close()
	}
}

// frame is a text frame whose mask changes nothing.
func frame(text []byte) []byte {
	head := []byte{0x81, 0x80 | byte(len(text))}
	if len(text) > 125 {
		head = []byte{0x81, 0x80 | 127, 0, 0, 0, 0, byte(len(text) >> 24), byte(len(text) >> 16), byte(len(text) >> 8), byte(len(text))}
	}
	return append(append(head, 0, 0, 0, 0), text...)
}

func TestEveryUpgradeTakesWhatComesWithTheHandshake(t *testing.T) {
	root, found := os.DirFS(filepath.Join("..", "..")), 0
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if d.IsDir() && (path == "bench" || path == "interop" || strings.HasPrefix(path, ".git")) {
			return fs.SkipDir
		}
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		b, err := fs.ReadFile(root, path)
		if err != nil || !bytes.Contains(b, []byte("gorilla/websocket")) {
			return err
		}
		for _, line := range bytes.Split(b, []byte("\n")) {
			if !bytes.Contains(line, []byte("pgrader.Upgrade(")) && !bytes.Contains(line, []byte("upper.Upgrade(")) {
				continue
			}
			found++
			for _, by := range []string{"early.Handshake{", "sharing{", "Upgrade(h, "} { // those that are, or hold, one
				if bytes.Contains(line, []byte(by)) {
					return nil
				}
			}
			t.Errorf("%s: %s refuses a client whose first frame comes with its handshake: give it an early.Handshake", path, bytes.TrimSpace(line))
		}
		return nil
	})
	if err != nil || found < 3 {
		t.Errorf("%d places upgrade to a WebSocket, want 3 or more; %v", found, err)
	}
}
