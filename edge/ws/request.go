package ws

import (
	"net/http"
	"net/url"

	"github.com/agora-relay/agora"
)

// single are the headers and parameters that decide who connects: what stands
// before this server might go by another one of several than the door does.
var single = struct{ headers, parameters []string }{
	headers:    []string{"Authorization", "Origin", "Host", "Sec-Websocket-Key"},
	parameters: []string{"token", "agent_id", "resume_token", "last_seq", "receipts", "max_frame"},
}

// ambiguous returns what in a handshake could be understood in several ways; nil when nothing could.
func ambiguous(r *http.Request) *agora.Error {
	if r.ContentLength != 0 || len(r.TransferEncoding) > 0 {
		return agora.Errorf(agora.InvalidRequest, "a handshake has no body")
	}
	for _, name := range single.headers {
		if len(r.Header[name]) > 1 {
			return agora.Errorf(agora.InvalidRequest, "header %s stands twice", name)
		}
	}
	q, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return agora.Errorf(agora.InvalidRequest, "the query can't be read")
	}
	for _, name := range single.parameters {
		if len(q[name]) > 1 {
			return agora.Errorf(agora.InvalidRequest, "parameter %s stands twice", name)
		}
	}
	return nil
}
