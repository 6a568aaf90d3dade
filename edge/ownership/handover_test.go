package ownership

import (
	"context"
	"net"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker"
	"github.com/agora-relay/agora/presence"
)

// unheard are peers that have ended with the question to hand over: it is never answered, and nobody is there under
// their names.
type unheard struct{ Peers }

func (unheard) HandOver(ctx context.Context, _ presence.Holder, _ agora.Address, _ uint64) (done, clean bool, err error) {
	<-ctx.Done()
	return false, false, ctx.Err()
}

func (unheard) Ping(context.Context, presence.Holder) error { return broker.ErrNoEdge }

// An edge may be killed just as it is asked to hand over: its agents are elsewhere no later than had it been killed
// before.
func TestAHolderThatEndsAsItIsAskedCostsNoLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		server, err := presence.EmbedInProcess()
		if err != nil {
			t.Fatal(err)
		}
		defer server.Close()
		client := redis.NewClient(&redis.Options{
			Addr:   "127.0.0.1:6379", // nobody looks there, and it is no name to be resolved
			Dialer: func(context.Context, string, string) (net.Conn, error) { return server.Dial() },
		})
		defer client.Close()
		const lease = 15 * time.Second
		store := presence.New(presence.Config{Client: client, Lease: lease})
		holder := presence.Holder{Edge: "e1", Incarnation: "1"}
		if _, err := store.Leases.Renew(t.Context(), holder, ""); err != nil {
			t.Fatal(err)
		}
		var background sync.WaitGroup
		defer background.Wait()
		o := New(Config{Presence: store, Peers: unheard{}, Lease: lease, Sessions: nobody{}, Context: t.Context(), Go: background.Go})
		began, gone := time.Now(), false
		for s := new(absence); !gone; {
			gone, _ = o.handovers.handedOver(t.Context(), presence.Claim{Agent: "a"}, presence.Past{Holder: holder}, s)
		}
		if took := time.Since(began); took > lease/3 {
			t.Errorf("taken for gone after %v of a lease of %v, want soon after it left out two renewals", took, lease)
		}
	})
}
