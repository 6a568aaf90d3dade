//go:build chaos

package reliability

import (
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

const ruinTime = 100 * time.Second // that all kinds of things are killed for

// TestAccountsBalanceWhateverIsKilled has agents at bare sockets, which are cut at random and come back anywhere, say
// things under ids, numbers and indexes, while edges, NATS nodes and Redis are killed, frozen, emptied and drained.
// What was receipted is held against what arrives. Mailboxes of 512 records overflow while senders are away: what
// retention takes is told. ACCOUNTS_SEED chooses what is done, though not when it hits.
func TestAccountsBalanceWhateverIsKilled(t *testing.T) {
	binary := agoratest.BuildAgora(t, "")
	for name, records := range map[string]int{"mailboxes as they are": 4096, "mailboxes that overflow": 512} {
		t.Run(name, func(t *testing.T) {
			seed := uint64(time.Now().UnixNano())
			if set, err := strconv.ParseUint(os.Getenv("ACCOUNTS_SEED"), 10, 64); err == nil {
				seed = set
			}
			t.Logf("ACCOUNTS_SEED=%d", seed)
			c := start(t, agoratest.ProcessOptions{Binary: binary, Lease: lease, Flags: []string{"--mailbox.max-records", strconv.Itoa(records)}})
			b := openBooks(t, c.URLs(), seed)
			b.overflows = records < 4096
			r := ruin{Processes: c, t: t, rnd: rand.New(rand.NewPCG(seed, 0)), books: b, streams: c.NATS.Streams()}
			for end := time.Now().Add(ruinTime); time.Now().Before(end) && !b.failed(); {
				r.one()
				r.lasts(r.between(time.Second, 6*time.Second))
			}
			c.Heal()
			b.close()
		})
	}
}

// ruin does things to a cluster that it has to bear.
type ruin struct {
	*agoratest.Processes
	t     testing.TB
	rnd   *rand.Rand
	books *books

	streams []string // of the log
}

// one does one thing, and undoes it.
func (r *ruin) one() {
	kinds := []struct {
		name string
		do   func()
	}{
		{"an edge is killed", func() { r.killEdges(r.rnd.IntN(3)) }},
		{"two edges are killed", func() { k := r.rnd.IntN(3); r.killEdges(k, (k+1)%3) }},
		{"an edge is drained", func() { e := r.Edges[r.rnd.IntN(3)]; e.Drain(); e.Start() }},
		{"an edge is frozen past its lease", r.freezeEdge},
		{"a NATS node is killed", func() { r.killNATS(r.leader()) }},
		{"all of NATS is killed", func() { r.killNATS(0, 1, 2) }},
		{"a NATS node is frozen", r.freezeNATS},
		{"Redis is emptied", func() { r.Redis.Stop(); r.lasts(r.between(0, 3*time.Second)); r.Redis.Start() }},
		{"an edge and a NATS node are killed", r.killBoth},
	}
	k := kinds[r.rnd.IntN(len(kinds))]
	r.t.Logf("%5.1f s: %s", time.Since(r.books.began).Seconds(), k.name)
	k.do()
}

func (r *ruin) killEdges(edges ...int) {
	for _, k := range edges {
		r.Edges[k].Kill()
	}
	r.lasts(r.between(0, 4*time.Second))
	for _, k := range edges {
		r.Edges[k].Start()
	}
}

func (r *ruin) freezeEdge() {
	e := r.Edges[r.rnd.IntN(3)]
	e.Freeze()
	r.lasts(4 * lease)
	e.Thaw()
}

func (r *ruin) killNATS(nodes ...int) {
	for _, k := range nodes {
		r.NATS.Kill(k)
	}
	r.lasts(r.between(time.Second, 8*time.Second))
	for _, k := range nodes {
		r.NATS.Start(k)
	}
}

func (r *ruin) freezeNATS() {
	k := r.leader()
	r.NATS.Freeze(k)
	r.lasts(8 * time.Second)
	r.NATS.Thaw(k)
}

func (r *ruin) killBoth() {
	e, k := r.Edges[r.rnd.IntN(3)], r.leader()
	e.Kill()
	r.NATS.Kill(k)
	r.lasts(2 * time.Second)
	r.NATS.Start(k)
	e.Start()
}

// leader returns a NATS node that leads a stream of the log; any one where none is known to.
func (r *ruin) leader() int {
	if k := r.NATS.Leader(r.streams[r.rnd.IntN(len(r.streams))]); k >= 0 {
		return k
	}
	return r.rnd.IntN(3)
}

// lasts lets what was done last, unless the accounts are wrong by then.
func (r *ruin) lasts(d time.Duration) { await.Within(d, r.books.failed) }

func (r *ruin) between(least, most time.Duration) time.Duration {
	return least + time.Duration(r.rnd.Int64N(int64(most-least)))
}
