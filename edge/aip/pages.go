package aip

import (
	"context"

	"google.golang.org/grpc/tap"
)

// keepPagesOut is asked of each call as soon as its header is there. A browser speaks no gRPC by itself, but what
// translates for it hands on what it says of the page that calls.
func (i *interceptor) keepPagesOut(ctx context.Context, call *tap.Info) (context.Context, error) {
	if err := i.cfg.Pages.CheckMetadata(call.Header); err != nil {
		return nil, i.refused(call.FullMethodName, err)
	}
	return ctx, nil
}
