package auth

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/pause"
)

const (
	maxKeys     = 1 << 20 // bytes of a set
	mostWaiting = 256     // who wait for a fetch at a time: forged tokens must not hold many connections
)

// fetching says when a set of keys is fetched.
type fetching struct {
	every   time.Duration // between looks at the set; 5m
	retry   time.Duration // between fetches at least, however many ask; 2s
	timeout time.Duration // for one fetch; 5s
}

func (f fetching) withDefaults() fetching {
	f.every = cmp.Or(f.every, 5*time.Minute)
	f.retry = cmp.Or(f.retry, 2*time.Second)
	f.timeout = cmp.Or(f.timeout, 5*time.Second)
	return f
}

// remoteKeys are keys that are fetched. While they can't be, those fetched
// last go on: the one who has signed with them gets in, and nobody else.
type remoteKeys struct {
	url    string
	log    *slog.Logger
	times  fetching
	client http.Client
	told   func()        // called after another set has come into force
	wanted chan struct{} // holds a token while somebody waits for a fetch

	waiting atomic.Int64

	mu   sync.Mutex // guards the fields below
	keys keys
	err  error         // of the last fetch
	done chan struct{} // closed after the next fetch that has not begun
}

func newRemoteKeys(url string, times fetching, log *slog.Logger) *remoteKeys {
	times = times.withDefaults()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	return &remoteKeys{
		url: url, log: log, times: times, told: func() {}, wanted: make(chan struct{}, 1), done: make(chan struct{}),
		err: errors.New("not fetched yet"),
		client: http.Client{Transport: transport, Timeout: times.timeout, CheckRedirect: func(r *http.Request, via []*http.Request) error {
			if len(via) > 3 || r.URL.Scheme != "https" && via[0].URL.Scheme == "https" {
				return errors.New("the set of keys is redirected to where it is not to be believed")
			}
			return nil
		}},
	}
}

// find returns the keys that fit a token. Where none does, the set may have
// changed: it waits for it to be fetched once more. UNAVAILABLE when that failed.
func (r *remoteKeys) find(ctx context.Context, id, algorithm string) ([]key, error) {
	r.mu.Lock()
	fit, done := r.keys.find(id, algorithm), r.done
	r.mu.Unlock()
	if len(fit) > 0 {
		return fit, nil
	}
	defer r.waiting.Add(-1)
	if r.waiting.Add(1) > mostWaiting {
		return nil, &agora.Error{Code: agora.Unavailable, Message: "too many tokens of unknown keys at a time", RetryAfter: r.times.retry}
	}
	select {
	case r.wanted <- struct{}{}:
	default:
	}
	late := time.NewTimer(r.times.retry + r.times.timeout + time.Second)
	defer late.Stop()
	select {
	case <-done:
	case <-late.C:
	case <-ctx.Done():
		return nil, agora.AsError(ctx.Err())
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if fit = r.keys.find(id, algorithm); len(fit) == 0 && r.err != nil {
		return nil, &agora.Error{
			Code: agora.Unavailable, Message: "the keys that would verify this token can't be fetched now", RetryAfter: r.times.retry, Cause: r.err,
		}
	}
	return fit, nil
}

// watch fetches the keys again now and then, sooner when somebody waits for
// them or when they could not be fetched, until ctx is over.
func (r *remoteKeys) watch(ctx context.Context) {
	defer r.client.CloseIdleConnections()
	for pause.For(ctx, r.times.retry) {
		r.mu.Lock()
		err := r.err
		r.mu.Unlock()
		every := r.times.every
		if err != nil {
			every = r.times.retry
		}
		next := time.NewTimer(every)
		select {
		case <-r.wanted:
		case <-next.C:
		case <-ctx.Done():
		}
		next.Stop()
		r.refresh(ctx) // it has logged what went wrong
	}
}

// refresh fetches the keys once, and wakes who waits for that.
func (r *remoteKeys) refresh(ctx context.Context) error {
	r.mu.Lock()
	done := r.done
	r.done = make(chan struct{}) // who comes from now on waits for the next one
	r.mu.Unlock()
	defer close(done)
	got, err := r.fetch(ctx)
	if r.take(ctx, got, err) {
		r.told()
	}
	return err
}

// take notes what a fetch has brought, and reports whether the keys are others now.
func (r *remoteKeys) take(ctx context.Context, got keys, err error) (changed bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil {
		changed = !got.same(r.keys)
		r.keys = got
	}
	if failed := r.err != nil && r.keys != nil; err == nil && failed {
		r.log.Info("the keys of tokens are fetched", "keys", len(got))
	} else if err != nil && ctx.Err() == nil && (r.err == nil || r.err.Error() != err.Error()) {
		r.log.Error("the keys of tokens can't be fetched: those known stay in force", "keys", len(r.keys), "err", err)
	}
	r.err = err
	return changed
}

// standing reports whether the key that vouched for a principal was in the set fetched last.
func (r *remoteKeys) standing(p *edge.Principal) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.keys.standing(p)
}

func (r *remoteKeys) fetch(ctx context.Context) (keys, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, r.url, nil)
	if err != nil {
		return nil, err
	}
	answer, err := r.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s answers %s", req.URL.Redacted(), answer.Status)
	}
	b, err := io.ReadAll(io.LimitReader(answer.Body, maxKeys+1))
	if err == nil && len(b) > maxKeys {
		err = fmt.Errorf("the set of keys has more than %d bytes", maxKeys)
	}
	if err != nil {
		return nil, err
	}
	return parseKeys(b)
}
