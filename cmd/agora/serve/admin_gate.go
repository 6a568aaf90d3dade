package serve

import (
	"net"
	"net/http"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/cmd/agora/config"
	"github.com/agora-relay/agora/internal/bearer"
)

// gate lets operators' requests in: those that bear the token of a file, which is read each time, so that it may be
// changed; without a file those that come over loopback, from the same machine, container or pod, wherever the port is
// bound to.
type gate struct{ tokenFile string }

// guard returns h behind the gate. The port has refused requests of web pages by then; without a token a request for a
// name that is not this machine's is refused here.
func (g gate) guard(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		if err := g.admits(r); err != nil {
			if agora.AsError(err).Code == agora.Unauthorized {
				w.Header().Set("WWW-Authenticate", "Bearer")
			}
			refuseOperator(w, err)
			return
		}
		h.ServeHTTP(w, r)
	})
}

func (g gate) admits(r *http.Request) error {
	if g.tokenFile == "" {
		return admitsLoopback(r)
	}
	return bearer.Check(r, g.tokenFile, "edge")
}

// admitsLoopback refuses the one who does not ask from the same network namespace. The addresses are those of the
// connection: no header counts for the caller, but what a proxy writes counts against it, as that speaks for others; so
// does a name in Host that a page's owner could let point at this machine.
func admitsLoopback(r *http.Request) error {
	local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
	if local == nil || !config.IsLoopback(local.String()) || !config.IsLoopback(r.RemoteAddr) {
		return agora.Errorf(agora.Forbidden,
			"operators are answered on loopback alone, so ask on the edge's own machine, or in its container or pod; from elsewhere the edge must be given --admin.token-file, and its token presented")
	}
	for _, name := range proxyHeaders {
		if len(r.Header.Values(name)) > 0 {
			return agora.Errorf(agora.Forbidden, "requests that come by a proxy need the token of the edge's --admin.token-file")
		}
	}
	if host := r.Host; !config.IsLoopback(host) && !config.IsLoopback(net.JoinHostPort(strings.Trim(host, "[]"), "0")) {
		return agora.Errorf(agora.Forbidden, "ask for 127.0.0.1, [::1] or localhost, not for another name")
	}
	return nil
}

// proxyHeaders are written by proxies about those for whom they ask.
var proxyHeaders = []string{"Forwarded", "Via", "X-Forwarded-For", "X-Forwarded-Host", "X-Real-Ip"}
