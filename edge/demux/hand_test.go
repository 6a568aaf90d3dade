package demux

import (
	"context"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// BenchmarkHand hands batches of chunks of 100 bytes, as a pull brings them, to readers that wait for them, without a
// log.
func BenchmarkHand(b *testing.B) {
	for _, readers := range []int{1, 100} {
		b.Run(fmt.Sprintf("readers=%d", readers), func(b *testing.B) {
			taken := make(chan struct{}, readers)
			d := New(Config{Queue: math.MaxInt32, Records: math.MaxInt64, Serve: func(x *Exchange) {
				for n := 0; ; n++ {
					if _, err := x.Next(context.Background()); err != nil {
						return
					}
					if n > 0 && n%64 == 0 {
						taken <- struct{}{}
					}
				}
			}})
			defer d.Close()
			d.position.acked = math.MaxUint64 // there is no session to tell
			var seq uint64 = 1 << agora.SeqShift
			batch := func(part agora.Part, k, n int) []edge.Delivery {
				ds := make([]edge.Delivery, n)
				for i := range ds {
					seq++
					ds[i].Message = &agora.Message{Part: part, From: "a", Stream: fmt.Sprint((k + i) % readers), Seq: seq,
						Body: []byte(strings.Repeat("x", 100))}
				}
				return ds
			}
			d.hand(batch(agora.Start, 0, readers))
			all := batch(agora.Chunk, 0, 64*readers)
			b.ResetTimer()
			for n := 0; n < b.N; n += len(all) {
				for i := range all {
					seq++
					all[i].Message.Seq = seq
				}
				d.hand(all)
				for range readers {
					<-taken
				}
			}
			b.StopTimer()
			b.ReportMetric(b.Elapsed().Seconds()*1e9/float64((b.N+len(all)-1)/len(all)*len(all)), "ns/part")
		})
	}
}
