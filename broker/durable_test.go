package broker

import (
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/await"
)

// TestWhatIsReceiptedOutlivesEveryServerProcess kills every server of the log at once, while records come in, and starts them
// again on their files. Stored does not mean synced; but what a process has written is the system's to keep, and a process's
// death loses nothing of it. (A power cut would: none can be made here.)
func TestWhatIsReceiptedOutlivesEveryServerProcess(t *testing.T) {
	if testing.Short() {
		t.Skip("left to make test")
	}
	t.Parallel()
	for _, nodes := range []int{1, 3} {
		t.Run(fmt.Sprint(nodes, " servers"), func(t *testing.T) {
			t.Parallel()
			p := testProcesses(t, nodes, "")
			b := p.broker(nil)
			const lanes = 20
			var receipted [lanes]atomic.Uint64
			var all []*Lane
			for k := range lanes {
				l := b.Lane(LaneConfig{From: agora.AgentID(fmt.Sprint(k)), Session: fmt.Sprint("s", k), Epoch: 1, To: bob})
				defer l.Close()
				all = append(all, l)
			}
			var sum atomic.Int64
			stop := make(chan struct{})
			var wg sync.WaitGroup
			for k, l := range all {
				wg.Go(func() {
					for n := uint64(1); ; n++ {
						stored := make(chan Result, 1)
						l.Put(numbered(n, text(fmt.Sprint(n))), func(r Result) { stored <- r })
						select {
						case r := <-stored:
							if r.Err != nil {
								return
							}
							receipted[k].Store(n)
							sum.Add(1)
						case <-stop:
							return
						}
					}
				})
			}
			await.True(t, "records come in", func() bool { return sum.Load() > 500 })
			p.kill()
			close(stop)
			wg.Wait()
			p.start()
			fresh := p.broker(nil)
			got := map[agora.AgentID]uint64{}
			for _, m := range listen(t, fresh, bob, From{}).quiet(t) {
				if m.N != got[m.From]+1 {
					t.Fatalf("%s: number %d after %d", m.From, m.N, got[m.From])
				}
				got[m.From] = m.N
			}
			for k := range lanes {
				if n := receipted[k].Load(); got[agora.AgentID(fmt.Sprint(k))] < n {
					t.Errorf("lane %d: %d were receipted, %d are there", k, n, got[agora.AgentID(fmt.Sprint(k))])
				}
			}
		})
	}
}

// BenchmarkStoredAgainstSynced compares, in one run, a log that leaves it to the system when to write to the disk (the
// server's default) with one that has every record on the disk before it answers. Run it with -benchtime 1x.
func BenchmarkStoredAgainstSynced(b *testing.B) {
	for _, nodes := range []int{1, 3} {
		for _, sync := range []string{"", "always"} {
			name := fmt.Sprintf("R%d/stored", nodes)
			if sync != "" {
				name = fmt.Sprintf("R%d/synced", nodes)
			}
			b.Run(name, func(b *testing.B) {
				edge := testProcesses(b, nodes, sync).broker(nil)
				for b.Loop() {
					saturate(b, edge, 3*time.Second)
					pace(b, edge, 3*time.Second)
				}
			})
		}
	}
}

// saturate keeps 200 lanes full for a time, and reports what was stored.
func saturate(b *testing.B, edge *Broker, d time.Duration) {
	before, began := edge.Stats(), time.Now()
	var wg sync.WaitGroup
	for k := range 200 {
		wg.Go(func() {
			l := edge.Lane(LaneConfig{From: "bench", Session: fmt.Sprint("full", k), Epoch: 1, To: agora.ToAgent("default", agora.AgentID(fmt.Sprint(k)))})
			defer l.Close()
			room := make(chan struct{}, 64)
			for time.Since(began) < d {
				room <- struct{}{}
				l.Put(agora.Message{Body: make([]byte, 100)}, func(r Result) {
					<-room
					if r.Err != nil {
						b.Error(r.Err)
					}
				})
			}
			if err := l.Flush(b.Context()); err != nil {
				b.Error(err)
			}
		})
	}
	wg.Wait()
	took, after := time.Since(began).Seconds(), edge.Stats()
	b.ReportMetric(float64(after.Parts-before.Parts)/took, "chunks/s")
	b.ReportMetric(float64(after.Records-before.Records)/took, "records/s")
}

// pace puts ten messages now and then, each in a lane of its own, and reports how long their receipts take.
func pace(b *testing.B, edge *Broker, d time.Duration) {
	var lanes []*Lane
	for k := range 10 {
		l := edge.Lane(LaneConfig{From: "bench", Session: fmt.Sprint("pace", k), Epoch: 1, To: agora.ToAgent("default", agora.AgentID(fmt.Sprint(k)))})
		defer l.Close()
		lanes = append(lanes, l)
	}
	var took []time.Duration
	tick := time.NewTicker(20 * time.Millisecond)
	defer tick.Stop()
	for began := time.Now(); time.Since(began) < d; <-tick.C {
		told := make(chan time.Duration, len(lanes))
		for _, l := range lanes {
			put := time.Now()
			l.Put(agora.Message{Body: make([]byte, 100)}, func(Result) { told <- time.Since(put) })
		}
		for range lanes {
			took = append(took, <-told)
		}
	}
	slices.Sort(took)
	b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-µs")
	b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-µs")
}
