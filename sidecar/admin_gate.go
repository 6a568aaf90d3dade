package sidecar

import (
	"net"
	"net/http"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/bearer"
)

// adminGate lets in whom the API speaks for the agent: the one who bears the token of a file, which is read each time,
// so that it may be changed; the one who reaches the port where there is no file.
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
	return bearer.Check(r, g.tokenFile, "sidecar")
}

// isWide reports whether others than this machine may reach a listener.
func isWide(l net.Listener) bool {
	at, is := l.Addr().(*net.TCPAddr)
	return is && !at.IP.IsLoopback()
}
