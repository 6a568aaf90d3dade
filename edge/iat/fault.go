package iat

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net/http"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/tools"
	"github.com/agora-relay/agora/wire/iat"
)

const media = "application/json"

// fault is an error in the form of the door: an envelope of type response.
func (d *Door) fault(r *http.Request, err error, e *agora.Error) (string, []byte) {
	d.stats.Errors.Count(e.Code)
	f := &iat.Fault{Err: e, Path: pathOf(err)}
	if posted, ok := r.Context().Value(envelopeKey{}).(*iat.Envelope); ok {
		f.ID, f.From = posted.ID, posted.From
	}
	if known, ok := errors.AsType[*iat.Fault](err); ok {
		f.ID, f.From = known.ID, known.From
	}
	return media, append(iat.AppendFault(nil, d.says(), f), '\n')
}

// pathOf returns the place that an error names; empty where it names none.
func pathOf(err error) string {
	if f, ok := errors.AsType[*iat.Fault](err); ok {
		return f.Path
	}
	if r, ok := errors.AsType[*tools.Refusal](err); ok {
		return r.Path
	}
	return ""
}

// inCall returns err, the place in it as that in the envelope of a call.
func inCall(e *iat.Envelope, err error) error {
	if r, ok := errors.AsType[*tools.Refusal](err); ok && e.Action == iat.ActionCallTool {
		return &iat.Fault{Err: r.Err, Path: "/payload/arguments" + r.Path, ID: e.ID}
	}
	return err
}

// isTraceID reports whether an id is that of a trace of W3C Trace Context.
func isTraceID(s string) bool {
	if len(s) != 32 {
		return false
	}
	zero := true
	for i := range len(s) {
		c := s[i]
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
		zero = zero && c == '0'
	}
	return !zero
}

// spanID returns the id of a span that nobody has made.
func spanID() string {
	var b [8]byte
	_, _ = rand.Read(b[:]) // which never fails
	b[0] |= 1              // zero is none
	return hex.EncodeToString(b[:])
}
