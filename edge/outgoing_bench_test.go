package edge

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/broker/natsd"
	"github.com/agora-relay/agora/edge/relay"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/presence"
)

// BenchmarkPut is what a session's verb costs behind its rules, from the lane through the log to the receipt: of a
// chunk with a number, of which nothing is kept, and of a message with an id.
func BenchmarkPut(b *testing.B) {
	o := benchedOutgoing(b)
	to := agora.ToSpace("t", "room")
	body := []byte(`{"token":"word"}`)
	sent := &o.node.stats.sent
	b.Run("chunk", func(b *testing.B) {
		b.ReportAllocs()
		m := agora.Message{Kind: agora.Event, Part: agora.Start, Stream: fmt.Sprint("s", b.N), To: to, Body: body}
		want := sent.Load() + int64(b.N)
		for n := range b.N {
			if err := o.put(b.Context(), m, &Command{}); err != nil {
				b.Fatal(err)
			}
			m.Part, m.N = agora.Chunk, sent0+uint64(n)
		}
		sent0 += uint64(b.N)
		await.True(b, "all is stored", func() bool { return sent.Load() >= want })
	})
	b.Run("whole", func(b *testing.B) {
		b.ReportAllocs()
		want := sent.Load() + int64(b.N)
		for range b.N {
			if err := o.put(b.Context(), agora.Message{Kind: agora.Event, To: to, Body: body}, &Command{ID: "id", Receipts: agora.Stored}); err != nil {
				b.Fatal(err)
			}
		}
		await.True(b, "all is stored", func() bool { return sent.Load() >= want })
	})
}

var sent0 uint64 = 1 // the number of the next chunk

// deaf is a connection that nobody listens to.
type deaf struct{}

func (deaf) Wake()         {}
func (deaf) Notify(Notice) {}
func (deaf) Close(Reason)  {}

// benchedOutgoing is what one session sends, on a log and a presence of its own.
func benchedOutgoing(b *testing.B) *outgoing {
	ctx := await.Context(b)
	must := func(err error) {
		b.Helper()
		if err != nil {
			b.Fatal(err)
		}
	}
	nats, err := natsd.Embed(ctx, natsd.Config{})
	must(err)
	b.Cleanup(nats.Shutdown)
	log, err := broker.Connect(ctx, broker.Config{URL: nats.URL(), Memory: true})
	must(err)
	b.Cleanup(log.Close)
	redis, err := presence.Embed()
	must(err)
	b.Cleanup(redis.Close)
	client, err := presence.Dial("redis://" + redis.Addr())
	must(err)
	store := presence.New(presence.Config{Client: client, Lease: time.Hour})
	b.Cleanup(func() { store.Close() })
	must(store.SetWhole(ctx))
	h := presence.Holder{Edge: "edge", Incarnation: "1"}
	_, err = store.Leases.Renew(ctx, h, "")
	must(err)
	claim, err := store.Sessions.Claim(ctx, presence.ClaimRequest{
		Tenant: "t", Agent: "alice", Principal: "p", Holder: h, Conn: "c", Session: "s1", Token: "token", Card: agora.Agent{ID: "alice", Name: "alice"},
	})
	must(err)
	_, err = store.Sessions.Begin(ctx, claim)
	must(err)
	r := relay.New(relay.Config{
		Broker: log, Presence: store, MaxRecords: 1 << 20, MaxAge: 10 * time.Minute, InFlight: 1 << 20,
		Valid: func() (time.Time, bool) { return log.Now(), true },
	})
	b.Cleanup(r.Close)
	by := new(Actor)
	by.principal.Store(&Principal{Name: "p", Tenant: "t"})
	o := &outgoing{binding: &binding{node: &Node{relay: r}, actor: by, claim: claim, conn: deaf{}}}
	b.Cleanup(func() { o.sender().Close() })
	return o
}
