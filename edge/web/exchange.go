package web

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/admission"
)

// Exchange is a request that was let in, and its answer. Its handler alone uses it, but for what says otherwise.
type Exchange struct {
	Actor   *edge.Actor   // who asks
	Request *http.Request // its body is read by Body and Decode

	ctx       context.Context // see Context; that of Request ends with the peer alone
	kit       *Kit
	path      *Path
	w         http.ResponseWriter
	control   *http.ResponseController
	admission edge.Admission
	cancel    context.CancelCauseFunc
	kept      admission.Kept // of its body
	queued    atomic.Int64   // bytes of its answer that wait to be written
	begun     bool           // an answer has begun
	events    *Events        // the answer, where it is one of events
	stranger  stranger       // until it is known whose the request is
	head      []byte         // of the body, read to find that out
	headWhole bool           // that was all of it

	drain    sync.Once
	draining chan struct{} // closed when the edge drains, once the answer lasts

	mu      sync.Mutex // guards the fields below
	lasting bool
}

// serve lets a request in and has it answered.
func (k *Kit) serve(w http.ResponseWriter, r *http.Request, p *Path, do Handler) {
	ctx, cancel := context.WithCancelCause(r.Context())
	defer cancel(nil)
	x := &Exchange{
		Request: r, ctx: ctx, kit: k, path: p, w: w, control: http.NewResponseController(w), cancel: cancel, draining: make(chan struct{}),
	}
	admission, err := k.letIn(x)
	if err != nil {
		if x.headWhole {
			x.Request.Body = http.NoBody // nothing of it is left
		}
		k.refuse(w, x.Request, p, err)
		return
	}
	defer admission.Release()
	x.Actor, x.admission = admission.Actor, admission
	defer x.kept.Close()
	if k.node.usage != nil {
		x.kept.Owned(k.node.usage, x.Actor.Owner(""))
	}
	if !k.enlist(x) {
		k.refuse(w, r, p, errGone)
		return
	}
	defer k.dismiss(x)
	k.stats.Admitted.Add(1)
	k.cfg.Admitted(r.Context())
	if r.Body == http.NoBody {
		x.readUntil(time.Time{}) // the answer may take longer than a request may
	}
	defer x.rest()
	if p.Counts || p.Lasts && r.Method == http.MethodHead {
		err = x.Actor.SpendRequest()
	}
	if err == nil {
		err = do(x)
	}
	x.finish(err)
}

// finish ends the answer with what its handler returned.
func (x *Exchange) finish(err error) {
	if cause := x.cause(); err != nil && cause != nil {
		err = cause // what ended it, and not what that led to
	}
	switch {
	case x.events != nil:
		x.events.end(err)
	case errors.Is(err, errHead) || errors.Is(err, context.Canceled) && x.gone(): // nobody waits for more
	case err != nil && x.begun:
		panic(http.ErrAbortHandler) // the peer must not take what there is for all
	case err != nil:
		x.kit.refuse(x.w, x.Request, x.path, err)
	case !x.begun:
		x.Answer(http.StatusNoContent, nil)
	}
}

// cause returns why the request was ended, where it was not by its peer.
func (x *Exchange) cause() error {
	if e, ok := errors.AsType[*agora.Error](context.Cause(x.Context())); ok {
		return e
	}
	return nil
}

// gone reports whether the peer does not wait for an answer any more.
func (x *Exchange) gone() bool { return x.Context().Err() != nil && x.cause() == nil }

// rest has the exchange counted among those that last no more.
func (x *Exchange) rest() {
	x.mu.Lock()
	defer x.mu.Unlock()
	if x.lasting {
		x.lasting = false
		x.kit.stats.Lasting.Add(-1)
	}
}

// Context ends with the peer, the credentials and the edge; [context.Cause] says which where it was not the peer.
func (x *Exchange) Context() context.Context { return x.ctx }

// Header is that of the answer, until it begins.
func (x *Exchange) Header() http.Header { return x.w.Header() }

// Last says that the answer lasts: what comes of the request's body from now on is dropped, it is ended when the
// credentials are not good any more, and counted. A request that waits for something for longer than a moment calls it,
// as those do that answer with events. Drains tells when it is to come to an end.
func (x *Exchange) Last() {
	x.readUntil(time.Time{})
	if x.Request.ProtoMajor > 1 {
		_ = x.Request.Body.Close() // else the connection keeps it
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if !x.lasting {
		x.lasting = true
		x.kit.stats.Lasting.Add(1)
	}
	x.attach()
}

// Drains is closed when the edge drains and the request is to be made again elsewhere. One that can't be continues for
// as long as the edge does.
func (x *Exchange) Drains() <-chan struct{} { return x.draining }

// End ends the request: its handler finds its context over, and the peer is told err. Any goroutine may call it; the
// first call counts.
func (x *Exchange) End(err error) { x.cancel(err) }

// AnswerBytes answers with bytes of a media type. They may be anybody's: no browser runs anything in them.
func (x *Exchange) AnswerBytes(status int, media string, b []byte) error {
	x.begun = true
	x.w.Header().Set("Content-Security-Policy", "sandbox; default-src 'none'")
	x.kit.writeAs(x.w, x.Request, status, media, b)
	return nil
}

// AnswerTagged is AnswerBytes with what changes with its tag alone: who has it is told so. It may be kept by who asked,
// and is asked for again each time.
func (x *Exchange) AnswerTagged(tag, media string, b []byte) error {
	h := x.w.Header()
	h.Set("ETag", tag)
	h.Set("Cache-Control", "private, no-cache")
	for had := range strings.SplitSeq(strings.Join(x.Request.Header.Values("If-None-Match"), ","), ",") {
		if had = strings.TrimPrefix(strings.TrimSpace(had), "W/"); had == tag || had == "*" {
			return x.Answer(http.StatusNotModified, nil)
		}
	}
	return x.AnswerBytes(http.StatusOK, media, b)
}

// Answer answers with a status and v as JSON, or with nothing where v is nil.
func (x *Exchange) Answer(status int, v any) error {
	x.begun = true
	if v == nil {
		x.w.WriteHeader(status)
		return nil
	}
	body, err := json.Marshal(v)
	if err != nil {
		x.begun = false
		return err
	}
	x.kit.write(x.w, x.Request, status, append(body, '\n'))
	return nil
}

// Admission is what let the request in. It is released with the exchange.
func (x *Exchange) Admission() edge.Admission { return x.admission }

// TakeOver returns what the answer is written to, for a handler that takes the connection over and answers by itself.
func (x *Exchange) TakeOver() http.ResponseWriter {
	x.begun = true
	return x.w
}

// Held is what the edge keeps for the request. Any goroutine may call it.
func (x *Exchange) Held() (int64, bool) { return x.kept.Bytes() + x.queued.Load(), false }

// Shed ends the request because the edge holds too much. Any goroutine may call it.
func (x *Exchange) Shed() {
	x.End(&agora.Error{Code: agora.Unavailable, Message: edge.Overloaded.Text, RetryAfter: time.Second})
}

// attach has what is kept for the request counted from now on.
func (x *Exchange) attach() { x.admission.Attach(x) }

// hold counts bytes that are kept for the request. RATE_LIMITED where the one who asks may not have more kept.
func (x *Exchange) hold(n int) error {
	err := x.kept.Hold(n)
	if n > 0 && err == nil {
		x.admission.MarkActive()
	}
	return err
}

// queue counts bytes of the answer that wait.
func (x *Exchange) queue(n int64) {
	if x.queued.Add(n); n > 0 {
		x.admission.MarkActive()
	}
}

// readUntil bounds how long the body may take from now on; the zero time for ever.
func (x *Exchange) readUntil(t time.Time) {
	_ = x.control.SetReadDeadline(t) // where it can't be set there is no connection
}

// writeUntil bounds how long the server may take to write something by itself; the zero time for ever.
func (x *Exchange) writeUntil(t time.Time) {
	if x.Request.ProtoMajor == 1 {
		_ = x.control.SetWriteDeadline(t)
	}
}

var _ admission.Sheddable = (*Exchange)(nil)
