package loadgen

import (
	"cmp"
	"context"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
)

// calm is how long streams are measured while nobody returns, unless a storm says so, and for how long the others have
// been connected then.
const calm = 5 * time.Second

// LiveResult is what a storm means for streams of agents that stay: how late chunks are while all the others are
// connected and nothing else happens, and while they return.
type LiveResult struct {
	Streams int      `json:"streams"`
	Rate    float64  `json:"rate_offered"` // of all of them
	Calm    *Latency `json:"calm_us"`
	Storm   *Latency `json:"storm_us"`
	Lost    int64    `json:"lost"` // sent, and not arrived once and in order
}

// live is streams that go on while a storm is measured.
type live struct {
	cfg  Config
	calm Result

	end    context.CancelFunc
	work   sync.WaitGroup
	result Result // once work is done
}

// calmly measures the streams of agents that stay while those who will be cut off are connected, and nothing else
// happens; nil where there are none.
func (c StormConfig) calmly(ctx context.Context) (*live, error) {
	if c.Live == 0 {
		return nil, nil
	}
	l := &live{cfg: Config{
		Kind: Stream, System: c.System, Edges: c.Edges, Access: c.Access, Senders: c.Live, Receivers: c.Live, Rate: c.LiveRate, Size: c.Size,
		Warmup: cmp.Or(c.Calm, calm), Duration: cmp.Or(c.Calm, calm), Settle: c.Settle,
	}}
	r, err := Start(ctx, l.cfg)
	if err != nil {
		return nil, err
	}
	defer r.Close()
	l.calm = r.Measure(ctx, Servers{})
	return l, nil
}

// begin has the streams go on, and returns when they are measured. The caller calls over, unless there is an error.
func (l *live) begin(ctx context.Context) error {
	if l == nil {
		return nil
	}
	cfg := l.cfg
	cfg.Warmup, cfg.Duration = 0, time.Hour // until it is ended
	r, err := Start(ctx, cfg)
	if err != nil {
		return err
	}
	during, end := context.WithCancel(ctx)
	l.end = end
	l.work.Go(func() {
		defer r.Close()
		l.result = r.Measure(during, Servers{})
	})
	for late := time.Now().Add(cfg.Settle); r.Progress().Latency == nil; pause.For(ctx, time.Millisecond) {
		if time.Now().After(late) || ctx.Err() != nil {
			l.over()
			return agora.Errorf(agora.Timeout, "the streams of those who stay did not begin within %v", cfg.Settle)
		}
	}
	return nil
}

// over ends the streams and tells what they were like; nil where there are none.
func (l *live) over() *LiveResult {
	if l == nil {
		return nil
	}
	l.end()
	l.work.Wait()
	r := l.result
	return &LiveResult{
		Streams: l.cfg.Senders, Rate: l.cfg.Rate, Calm: l.calm.Latency, Storm: r.Latency,
		Lost: r.Expected - r.Received + r.Twice + r.Missed,
	}
}
