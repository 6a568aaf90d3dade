package main

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"os"
	"strings"

	"github.com/agora-relay/agora"
)

// gate lets operators' requests in: those that bear the token of a file, which is read each time, so that it may be
// changed; without a file those that come over loopback, on a port that nobody else can reach.
type gate struct {
	tokenFile string
	loopback  bool // the port is bound to loopback
}

// guard returns h behind the gate. A browser that is made to send a request by some page gets nothing done: it says whose page
// that is, or asks for a name that is not this machine's.
func (g gate) guard(h http.Handler) http.Handler {
	pages := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := g.admits(r); err != nil {
			if agora.AsError(err).Code == agora.Unauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refuseOperator(w, err)
			return
		}
		if r.Header.Get("Origin") != "" || pages.Check(r) != nil {
			refuseOperator(w, agora.Errorf(agora.Forbidden, "requests of web pages are not answered"))
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (g gate) admits(r *http.Request) error {
	if g.tokenFile == "" {
		if !g.loopback {
			return agora.Errorf(agora.Forbidden, "this port can be reached by others: give the edge --admin.token-file to have operators' requests answered")
		}
		host, _, err := net.SplitHostPort(r.Host)
		if err != nil {
			host = r.Host
		}
		if host != "localhost" && net.ParseIP(strings.Trim(host, "[]")) == nil {
			return agora.Errorf(agora.Forbidden, "ask for this machine's address, not for a name")
		}
		return nil
	}
	want, err := os.ReadFile(g.tokenFile)
	token := strings.TrimSpace(string(want))
	if err != nil || token == "" {
		return agora.Errorf(agora.Unavailable, "the file of --admin.token-file can't be read, or is empty")
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	a, b := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(a[:], b[:]) != 1 {
		return agora.Errorf(agora.Unauthorized, "a token is required: that of the edge's --admin.token-file")
	}
	return nil
}
