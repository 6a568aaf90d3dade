package demux_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/demux"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// puller is a connection that takes what comes with Pull alone.
type puller struct {
	woken chan struct{}
	got   atomic.Int64
}

func (p *puller) Wake() {
	select {
	case p.woken <- struct{}{}:
	default:
	}
}

func (*puller) Notify(edge.Notice) {}
func (*puller) Close(edge.Reason)  {}

// run pulls until ctx is over.
func (p *puller) run(ctx context.Context, s *edge.Session) {
	for {
		ds, err := s.Pull(ctx, 64<<10, func() {})
		if err != nil {
			return
		}
		var last uint64
		for _, d := range ds {
			p.got.Add(1)
			last = d.Message.Seq
		}
		s.Written()
		if len(ds) > 0 {
			_ = s.Do(ctx, &edge.Command{Verb: edge.Ack, Seq: last}) // what was delivered may be acknowledged
			continue
		}
		select {
		case <-p.woken:
		case <-ctx.Done():
			return
		}
	}
}

// BenchmarkParts sends chunks of 100 bytes in so many streams from another edge, and waits until all are read: by Pull
// alone, or by a reader of each stream.
func BenchmarkParts(b *testing.B) {
	for _, streams := range []int{1, 100} {
		b.Run(fmt.Sprintf("pull/streams=%d", streams), func(b *testing.B) {
			c := start(b, agoratest.Options{Edges: 2})
			p := &puller{woken: make(chan struct{}, 1)}
			s := opened(b, c, 0, "n", p)
			ctx, stop := context.WithCancel(context.Background())
			var work sync.WaitGroup
			work.Go(func() { p.run(ctx, s) })
			defer work.Wait()
			defer stop()
			send(b, c, streams, &p.got)
		})
		b.Run(fmt.Sprintf("demux/streams=%d", streams), func(b *testing.B) {
			c := start(b, agoratest.Options{Edges: 2})
			var got atomic.Int64
			n := enter(b, c, 0, "n", demux.Config{Serve: func(x *demux.Exchange) {
				for {
					if _, err := x.Next(context.Background()); err != nil {
						return
					}
					got.Add(1)
				}
			}}, nil)
			send(b, c, streams, &got)
			b.ReportMetric(float64(n.Stats().Lagged.Load()), "lags")
		})
	}
}

// opened is a session of a connection without a demux.
func opened(b *testing.B, c *agoratest.Cluster, k int, id agora.AgentID, conn edge.Conn) *edge.Session {
	b.Helper()
	actor, err := c.Node(k).Authenticate(b.Context(), edge.Credentials{})
	if err != nil {
		b.Fatal(err)
	}
	s, _, err := actor.Open(b.Context(), edge.Hello{Card: agora.Agent{ID: id}, Conn: "of " + string(id), Proof: edge.ByAck}, conn)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { s.Closed(true) })
	s.Begin()
	return s
}

func send(b *testing.B, c *agoratest.Cluster, streams int, got *atomic.Int64) {
	b.Helper()
	s := opened(b, c, 1, "from", &puller{woken: make(chan struct{}, 1)})
	say := func(part agora.Part, k int, body []byte) {
		m := agora.Message{Kind: agora.Request, Part: part, Stream: fmt.Sprint(k), To: agora.Address{Agent: "n"}, Body: body}
		if err := s.Do(context.Background(), &edge.Command{Verb: edge.Send, Message: m}); err != nil {
			b.Error(err)
		}
	}
	for k := range streams {
		say(agora.Start, k, nil)
	}
	text := []byte(`"` + strings.Repeat("x", 100) + `"`)
	b.ResetTimer()
	for n := range b.N {
		say(agora.Chunk, n%streams, text)
	}
	await.True(b, "all is read", func() bool { return got.Load() >= int64(b.N+streams) })
}
