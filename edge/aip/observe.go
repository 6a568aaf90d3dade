package aip

import (
	"context"
	"iter"
	"net"
	"strings"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/peer"
)

// CallerAddr returns the address that the connection of a call says it comes from; nil where the context is not one of
// a call.
func CallerAddr(ctx context.Context) net.Addr {
	if p, ok := peer.FromContext(ctx); ok {
		return p.Addr
	}
	return nil
}

// Codes returns how many calls have ended with each code, all codes that there are, by the names of the protocol, such
// as INVALID_ARGUMENT.
func (c *Counted) Codes() iter.Seq2[string, int64] {
	return func(yield func(string, int64) bool) {
		for code := range c.by {
			if !yield(codeName(codes.Code(code)), c.by[code].Load()) {
				return
			}
		}
	}
}

// codeName returns the name of a code as the protocol has it, not as the library.
func codeName(c codes.Code) string {
	switch c {
	case codes.OK:
		return "OK"
	case codes.Canceled:
		return "CANCELLED"
	}
	var b strings.Builder
	for k, r := range c.String() {
		if k > 0 && 'A' <= r && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToUpper(b.String())
}
