package sidecar

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/agora-relay/agora"
)

// adminGate lets in whom the API speaks for the agent: whoever bears the token of a file, which is read each time, so that it may be changed; whoever reaches the port where there is no file.
type adminGate struct{ tokenFile string }

// guards returns f behind the gate.
func (g adminGate) guards(f http.HandlerFunc) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := g.admits(r); err != nil {
			if agora.AsError(err).Code == agora.Unauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			status, answer := faultOf(r.Context(), err)
			writeAnswer(w, status, answer)
			return
		}
		f(w, r)
	}
}

func (g adminGate) admits(r *http.Request) error {
	if g.tokenFile == "" {
		return nil
	}
	b, err := os.ReadFile(g.tokenFile)
	want := strings.TrimSpace(string(b))
	if err != nil || want == "" {
		return agora.Errorf(agora.Unavailable, "the file of --admin.token-file is empty, or can't be read by user %d, as whom the sidecar runs", os.Geteuid())
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	x, y := sha256.Sum256([]byte(want)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(x[:], y[:]) != 1 {
		return agora.Errorf(agora.Unauthorized, "a token is required: that of the sidecar's --admin.token-file")
	}
	return nil
}

// isWide reports whether others than this machine may reach a listener.
func isWide(l net.Listener) bool {
	at, is := l.Addr().(*net.TCPAddr)
	return is && !at.IP.IsLoopback()
}
