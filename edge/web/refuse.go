package web

import (
	"cmp"
	"encoding/json"
	"errors"
	"log/slog"
	"math"
	"net/http"
	"net/netip"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
)

// Refusal is an error with a status of HTTP that its code does not have by itself.
type Refusal struct {
	Status int
	Err    *agora.Error
}

// Error returns the status and the error, for a log.
func (r *Refusal) Error() string { return strconv.Itoa(r.Status) + " " + r.Err.Error() }

// Unwrap returns the error.
func (r *Refusal) Unwrap() error { return r.Err }

// Fault is an error as bodies and events have it.
type Fault struct {
	Error FaultText `json:"error"`
}

// FaultText is what a Fault says.
type FaultText struct {
	Code    agora.Code `json:"code"`
	Message string     `json:"message"`
}

// statusOf returns an error as a peer may see it, and its status.
func statusOf(err error) (int, *agora.Error) {
	e := agora.AsError(err)
	if r, ok := errors.AsType[*Refusal](err); ok {
		return r.Status, e
	}
	return e.Code.Status().HTTP, e
}

// form returns an error in the form of the path; p may be nil for a path that nothing is at.
func (p *Path) form(r *http.Request, err error, e *agora.Error) (media string, body []byte) {
	if p != nil && p.Fault != nil {
		return p.Fault(r, err, e)
	}
	body, bad := json.Marshal(Fault{FaultText{e.Code, e.Message}})
	if bad != nil {
		body = []byte(`{"error":{"code":"` + string(e.Code) + `","message":""}}`)
	}
	return "application/json", append(body, '\n')
}

// refuse answers a request with an error.
func (k *Kit) refuse(w http.ResponseWriter, r *http.Request, p *Path, err error) {
	status, e := statusOf(err)
	k.stats.fault(e.Code)
	k.refusals.Note(e, func() []slog.Attr {
		return []slog.Attr{slog.String("from", k.client(r).String()), slog.Int("status", status)}
	})
	h := w.Header()
	if r.ProtoMajor == 1 && r.Body != http.NoBody {
		h.Set("Connection", "close") // else what is left of the body would be waited for
	}
	if status == http.StatusUnauthorized {
		h.Set("WWW-Authenticate", "Bearer")
	}
	if after := max(e.RetryAfter, retryAfter(status)); after > 0 {
		h.Set("Retry-After", strconv.Itoa(int(math.Ceil(after.Seconds()))))
		same := *e // which may be shared
		e, same.RetryAfter = &same, after
	}
	media, body := p.form(r, err, e)
	k.writeAs(w, r, status, media, body)
}

// retryAfter is when it makes sense to try again where the error does not say.
func retryAfter(status int) time.Duration {
	if status == http.StatusServiceUnavailable || status == http.StatusTooManyRequests {
		return time.Second
	}
	return 0
}

// client returns where a request comes from, by the word of trusted proxies.
func (k *Kit) client(r *http.Request) netip.Addr {
	return k.node.proxies.Client(r.RemoteAddr, r.Header.Values("X-Forwarded-For"))
}

// write answers with JSON that is made already.
func (k *Kit) write(w http.ResponseWriter, r *http.Request, status int, body []byte) {
	k.writeAs(w, r, status, "application/json", body)
}

// writeAs answers with a body of a media type.
func (k *Kit) writeAs(w http.ResponseWriter, r *http.Request, status int, media string, body []byte) {
	h := w.Header()
	h.Set("Content-Type", cmp.Or(media, "application/octet-stream"))
	h.Set("X-Content-Type-Options", "nosniff")
	h.Set("Cache-Control", cmp.Or(h.Get("Cache-Control"), "no-store"))
	h.Set("Content-Length", strconv.Itoa(len(body)))
	w.WriteHeader(status)
	if r.Method == http.MethodHead {
		return
	}
	n, err := w.Write(body)
	k.stats.BytesOut.Add(int64(n))
	if err != nil && stalled(err) {
		k.stats.Stalled.Add(1)
	}
}
