package web

import (
	"context"
	"errors"
	"net/url"
	"slices"
	"strings"
	"sync"

	"github.com/agora-relay/agora"
)

// Query returns the parameters of the request. Where some are named, it may have no others, and each once.
func (x *Exchange) Query(names ...string) (url.Values, error) {
	q, err := url.ParseQuery(x.Request.URL.RawQuery)
	if err != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "the query can't be read")
	}
	if len(names) == 0 {
		return q, nil
	}
	for name, values := range q {
		if len(values) > 1 || !slices.Contains(names, name) {
			return nil, agora.Errorf(agora.InvalidRequest, "parameters are %s, each once", strings.Join(names, ", "))
		}
	}
	return q, nil
}

// UntilDrained calls do with a context that ends with the exchange, or when the edge drains: then the request is to be
// made again elsewhere, and why is returned in place of the error that this has led to.
func (x *Exchange) UntilDrained(why error, do func(context.Context) error) error {
	ctx, cancel := context.WithCancelCause(x.Context())
	var watch sync.WaitGroup
	defer watch.Wait()
	defer cancel(nil)
	watch.Go(func() {
		select {
		case <-x.Drains():
			cancel(why)
		case <-ctx.Done():
		}
	})
	if err := do(ctx); err == nil || !errors.Is(context.Cause(ctx), why) {
		return err
	}
	return why
}
