package presence

import (
	"context"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
)

// backend is the server, and how it is asked: by scripts, of indexes and of agents' records.
type backend struct {
	cfg Config
	rdb Client
	log *slog.Logger

	// settled is the age from which a member of an index can't be part of a claim that is
	// still on its way, so that it may be dropped when the record does not bear it out.
	settled time.Duration

	restarts *atomic.Uint64 // see [Leases.Restarts]
}

// fields reads fields of the records of agents, in one pipeline.
func (b *backend) fields(ctx context.Context, es []entry, fields ...string) ([]reply, error) {
	p := b.rdb.Pipeline()
	cmds := make([]*redis.SliceCmd, len(es))
	for i, e := range es {
		cmds[i] = p.HMGet(ctx, recordOf(e.member), fields...)
	}
	if _, err := p.Exec(ctx); err != nil && len(es) > 0 {
		return nil, unavailable(err)
	}
	out := make([]reply, len(es))
	for i, c := range cmds {
		out[i] = reply{c.Val()}
	}
	return out, nil
}

// epochs returns the epoch of each agent that is active at the holder; 0 for the others.
func (b *backend) epochs(ctx context.Context, h Holder, es []entry) ([]uint64, error) {
	records, err := b.fields(ctx, es, "state", "edge", "inc", "epoch")
	if err != nil {
		return nil, err
	}
	out := make([]uint64, len(es))
	w := holderWords(h)
	for i, r := range records {
		if r.at(0).str() == "1" && r.at(1).str() == w[0] && r.at(2).str() == w[1] {
			out[i] = r.at(3).uint()
		}
	}
	return out, nil
}

// asHolder runs a script that answers 0 where the claim was taken.
func (b *backend) asHolder(ctx context.Context, c call) error {
	r, err := b.run(ctx, c)
	if err != nil {
		return err
	}
	if !r.yes() {
		return ErrDeposed
	}
	return nil
}

func holderWords(h Holder) [2]string {
	return [2]string{agora.EncodeToken(h.Edge), agora.EncodeToken(h.Incarnation)}
}

// unavailable returns err as agents may see it; nil stays nil.
func unavailable(err error) error {
	if err == nil {
		return nil
	}
	why := "presence can't be reached now"
	if said := err.Error(); strings.Contains(said, "NOPERM") || strings.Contains(said, "executing the script can't run this command") { // of an older Redis, within a script
		why = "presence refuses a command: the edges' user lacks rights there"
	}
	return &agora.Error{Code: agora.Unavailable, Message: why, RetryAfter: time.Second, Cause: err}
}
