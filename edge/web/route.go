package web

import (
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/agora-relay/agora"
)

// Handler answers a request that was let in. It returns once the answer is complete; an error that it returns is the
// answer, or the end of one that has begun. The request's context ends with its peer, its credentials and the edge.
type Handler func(*Exchange) error

// Methods are what can be done at one path. HEAD goes where GET is.
type Methods map[string]Handler

// Path is how the requests for one path are answered.
type Path struct {
	Methods Methods
	// Fault returns an error in the form that the path's errors have, and its media type; that of a [Fault] if nil. e
	// is what the peer may see of err, which may be any error.
	Fault func(r *http.Request, err error, e *agora.Error) (media string, body []byte)
	// Token returns the token that stands elsewhere than in the header of a request; the exchange has no Actor yet.
	// None does if nil.
	Token func(*Exchange) (string, error)
	// Head is told the beginning of the body of a request that presents no credentials, and finds the token there; none
	// is looked for if nil.
	Head Head
	// Reads says that a GET, and so a HEAD, changes nothing: a person may send one by a browser that does not say whose
	// page it is of. Where a GET binds an agent, or the like, it is false, see [origin.Policy.CheckChange].
	Reads bool
	// Counts says that each request counts as one message of its principal: where its handlers do nothing that counts
	// by itself.
	Counts bool
	// Lasts says that most answers are quiet for most of their time: what lets their requests in leaves no traces in
	// their memory, see [Apart].
	Lasts bool
}

// Head looks for a token in the beginning of a body, see [Exchange.Body]: in the first 16 KiB at most. Anyone who
// speaks is asked before the rest is read.
type Head interface {
	// Scan returns what looks for the token of one request.
	Scan() Scanner
	// Read is told the beginning of a body, once the token was found or there is none; whole says that there is no more
	// of it. It may give the exchange's Request another context, in which the path's Fault finds what the refusal is
	// about. Its error refuses a request that has no token.
	Read(x *Exchange, head []byte, whole bool) error
}

// Scanner looks for the token of one request.
type Scanner interface {
	// Next is given what has come of a body until now. It returns the token once it is there; over is true where there
	// is none, however much more comes.
	Next(head []byte) (token string, over bool)
}

// Handle has a path of a mux, which names no method, be answered: by the method's handler, once the request is let in.
func (k *Kit) Handle(mux *http.ServeMux, path string, methods Methods) {
	k.HandlePath(mux, path, Path{Methods: methods})
}

// HandlePath is [Kit.Handle] for a path with errors, or credentials, of its own form.
func (k *Kit) HandlePath(mux *http.ServeMux, path string, p Path) {
	mux.Handle(path, &route{kit: k, path: &p, allow: allowed(p.Methods)})
}

// route is one path.
type route struct {
	kit   *Kit
	path  *Path
	allow string // the methods, as headers have them
}

func allowed(methods Methods) string {
	names := slices.Collect(maps.Keys(methods))
	if _, ok := methods[http.MethodGet]; ok {
		names = append(names, http.MethodHead)
	}
	names = append(names, http.MethodOptions)
	slices.Sort(names)
	return strings.Join(slices.Compact(names), ", ")
}

func (t *route) handler(method string) Handler {
	if method == http.MethodHead {
		method = http.MethodGet
	}
	return t.path.Methods[method]
}

// ServeHTTP answers a request, or says why not: first what costs nothing to find out.
func (t *route) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	k := t.kit
	if r.ProtoMajor == 1 && len(r.TransferEncoding) > 0 {
		w.Header().Set("Connection", "close") // a proxy may have gone by a length that the server has left out, and take what follows for another request
	}
	if err := ambiguous(r); err != nil {
		k.refuse(w, r, t.path, err)
		return
	}
	if err := k.pages(w, r, t.check(r)); err != nil {
		k.refuse(w, r, t.path, err)
		return
	}
	if r.Method == http.MethodOptions {
		t.options(w, r)
		return
	}
	do := t.handler(r.Method)
	if do == nil {
		w.Header().Set("Allow", t.allow)
		k.refuse(w, r, t.path, &Refusal{http.StatusMethodNotAllowed, agora.Errorf(agora.InvalidRequest, "this path takes %s", t.allow)})
		return
	}
	k.serve(w, r, t.path, do)
}

// pages lets a web page that may ask read the answer, and returns why one may not.
func (k *Kit) pages(w http.ResponseWriter, r *http.Request, err error) error {
	w.Header().Add("Vary", "Origin")
	if origin := r.Header.Get("Origin"); err == nil && origin != "" {
		w.Header().Set("Access-Control-Allow-Origin", origin)
		w.Header().Set("Access-Control-Expose-Headers", exposed)
	}
	return err
}

// check asks whether a web page may send a request.
func (t *route) check(r *http.Request) error {
	if t.path.Reads || t.path.Methods[http.MethodGet] == nil {
		return t.kit.cfg.Pages.Check(r)
	}
	return t.kit.cfg.Pages.CheckChange(r)
}

// RefusePage answers a request that a web page was not allowed to send.
func (t *route) RefusePage(w http.ResponseWriter, r *http.Request, err error) {
	t.kit.refuse(w, r, t.path, t.kit.pages(w, r, err))
}

// options says what can be done at the path; to a browser also what a page may send. It asks for no credentials, as
// browsers send none.
func (t *route) options(w http.ResponseWriter, r *http.Request) {
	h := w.Header()
	h.Set("Allow", t.allow)
	if r.Header.Get("Origin") != "" && r.Header.Get("Access-Control-Request-Method") != "" {
		h.Set("Access-Control-Allow-Methods", t.allow)
		h.Set("Access-Control-Allow-Headers", requested)
		h.Set("Access-Control-Max-Age", "600")
	}
	if r.ProtoMajor == 1 && r.Body != http.NoBody {
		h.Set("Connection", "close")
	}
	w.WriteHeader(http.StatusNoContent)
}

// What pages may send, and read of an answer, besides what they always may.
const (
	requested = "Authorization, Content-Type, Accept, Idempotency-Key, Last-Event-ID, Traceparent, Tracestate"
	exposed   = "Retry-After, Location, Traceparent, Agora-Resume-Token, Agora-Last-Seq"
)
