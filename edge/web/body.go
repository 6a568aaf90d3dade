package web

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// bodyPiece is how much of a body is read at once.
const bodyPiece = 32 << 10

// Body reads the body, whose media type must be one of those named; any will do where none is. A body that is larger
// than the settings allow is MESSAGE_TOO_LARGE (413), one of another type or that is compressed 415, one that does not
// come in time 408.
func (x *Exchange) Body(types ...string) ([]byte, error) { return x.BodyUpTo(x.kit.cfg.Body, types...) }

// BodyUpTo is [Exchange.Body] for a body with a bound of its own.
func (x *Exchange) BodyUpTo(most int, types ...string) ([]byte, error) {
	r := x.Request
	if err := typed(r, types); err != nil {
		return nil, err
	}
	x.attach()
	x.readUntil(time.Now().Add(x.kit.cfg.BodyTime))
	if r.ContentLength > int64(most) {
		x.discard(most)
		return nil, tooLarge(most)
	}
	x.writeUntil(time.Now().Add(x.kit.cfg.BodyTime)) // a peer may be told to go on with its body first
	body := append(make([]byte, 0, min(max(r.ContentLength, 0)+1, bodyPiece)), x.head...)
	read, err := len(x.head), error(nil)
	if x.head = nil; x.headWhole {
		err = io.EOF
	}
	for {
		if full := x.hold(read); full != nil {
			return nil, full
		}
		switch {
		case len(body) > most:
			x.discard(most)
			return nil, tooLarge(most)
		case errors.Is(err, io.EOF):
			x.readUntil(time.Time{})
			x.writeUntil(time.Time{})
			r.Body = http.NoBody // nothing of it is left, whatever the answer
			return unmarked(body), nil
		case errors.Is(err, os.ErrDeadlineExceeded):
			return nil, tooSlow(errLateBody)
		case err != nil:
			return nil, errBrokenBody
		case len(body) == cap(body):
			body = slices.Grow(body, min(len(body), most-len(body)+1))
		}
		read, err = r.Body.Read(body[len(body):cap(body)])
		body = body[:len(body)+read]
		x.kit.stats.BytesIn.Add(int64(read))
	}
}

// discarded is how much of the rest of a body that is too large is read, in times of what a body may have.
const discarded = 4

// discard reads on in a body that is refused: a peer of HTTP/1 that is still writing when its connection is closed
// loses the refusal, and so do some of HTTP/2 (curl 7.88) whose stream is reset behind it. One that asked first whether
// it shall send the body has not sent it.
func (x *Exchange) discard(most int) {
	r := x.Request
	if r.Header.Get("Expect") == "" {
		n, err := io.CopyN(io.Discard, r.Body, int64(discarded*most)) // the one who sends more, or too slowly, may miss the answer
		x.kit.stats.BytesIn.Add(n)
		if errors.Is(err, io.EOF) {
			r.Body = http.NoBody
		}
	}
	x.readUntil(time.Time{})
}

// unmarked is a body without the byte order mark that some editors begin texts with.
func unmarked(b []byte) []byte { return bytes.TrimPrefix(b, []byte("\xEF\xBB\xBF")) }

func tooLarge(most int) error {
	return agora.Errorf(agora.MessageTooLarge, "the body has more than %d bytes", most)
}

// typed refuses what the body is not.
func typed(r *http.Request, types []string) error {
	if c := r.Header.Get("Content-Encoding"); c != "" && !strings.EqualFold(c, "identity") {
		return &Refusal{http.StatusUnsupportedMediaType, agora.Errorf(agora.InvalidRequest, "send the body without Content-Encoding")}
	}
	if len(types) == 0 {
		return nil
	}
	media, params, err := mime.ParseMediaType(r.Header.Get("Content-Type"))
	if err != nil && r.Header.Get("Content-Type") == "" {
		return nil
	}
	charset := strings.ToLower(params["charset"])
	if err != nil || !slices.Contains(types, media) || charset != "" && charset != "utf-8" && charset != "utf8" {
		return &Refusal{http.StatusUnsupportedMediaType, agora.Errorf(agora.InvalidRequest, "this path takes %s", types[0])}
	}
	return nil
}
