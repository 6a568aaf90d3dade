package web

import (
	"errors"
	"io"
	"net/http"
	"os"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/admission"
)

// headSize is how much of a body is read to find out who speaks.
const headSize = 16 << 10

// stranger is a request of somebody who has shown no credentials, while the beginning of its body is read. The zero
// value is nobody.
type stranger struct {
	*admission.Stranger

	mu   sync.Mutex // guards the field below
	over bool       // the request is no stranger's any more
}

// enter has the request be a stranger's until it is known whose it is.
func (x *Exchange) enter(k *Kit) {
	x.stranger.Stranger = k.node.strangers.Enter(k.client(x.Request), x.evict)
}

// evict ends the reading of a stranger's body.
func (x *Exchange) evict(error) {
	x.stranger.mu.Lock()
	defer x.stranger.mu.Unlock()
	if !x.stranger.over { // else the answer may be over, and what sets deadlines with it
		x.readUntil(time.Now().Add(-time.Second))
	}
}

// known says that the request is a stranger's no more: it was let in, or is refused.
func (x *Exchange) known() {
	if x.stranger.Stranger == nil {
		return
	}
	x.stranger.mu.Lock()
	x.stranger.over = true
	x.stranger.mu.Unlock()
	x.stranger.Leave()
}

// read reads the beginning of the body of a stranger until its token is found, and no more than headSize of it. It
// returns no token where there is none to be found. With no scanner it reads what there is.
func (x *Exchange) read(k *Kit, scan Scanner) (token string, err error) {
	if x.Request.Body == http.NoBody {
		return "", nil
	}
	x.enter(k)
	defer func() {
		if broken := x.path.Head.Read(x, unmarked(x.head), x.headWhole); err == nil && token == "" {
			err = broken
		}
	}()
	x.readUntil(time.Now().Add(k.cfg.BodyTime))
	x.writeUntil(time.Now().Add(k.cfg.BodyTime)) // a peer may be told to go on with its body first
	for over := false; token == "" && !over && !x.headWhole && len(x.head) < headSize; {
		if err := x.readHead(); err != nil {
			return "", err
		}
		if scan != nil {
			token, over = scan.Next(x.head)
		}
	}
	return token, nil
}

// readHead reads one piece of the beginning of the body.
func (x *Exchange) readHead() error {
	var piece [4 << 10]byte
	n, err := x.Request.Body.Read(piece[:min(len(piece), headSize-len(x.head))])
	x.kit.stats.BytesIn.Add(int64(n))
	x.head = append(x.head, piece[:n]...)
	if evicted := x.stranger.Hold(n); evicted != nil {
		return tooSlow(evicted)
	}
	switch {
	case errors.Is(err, io.EOF) || x.Request.ContentLength == int64(len(x.head)):
		x.headWhole = true
		return nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		return tooSlow(errLateBody)
	case err != nil:
		return errBrokenBody
	}
	return nil
}

var (
	errLateBody   = agora.Errorf(agora.Timeout, "the body did not come in time")
	errBrokenBody = agora.Errorf(agora.InvalidRequest, "the body can't be read to its end")
)

// tooSlow returns why a body was not read to its end, with the status of HTTP that says so where it came too slowly.
func tooSlow(err error) error {
	if e := agora.AsError(err); e.Code == agora.Timeout {
		return &Refusal{http.StatusRequestTimeout, e}
	}
	return err
}
