package admission

import (
	"sync/atomic"
	"time"

	"github.com/agora-relay/agora"
)

// tokenBucket holds tokens that come at a rate and are spent by messages. It is one
// number, the moment from which on it is full: so the many that share one take no
// lock, and a rate may change at any time. The zero value is full.
type tokenBucket struct{ full atomic.Int64 } // in ticks; 0 for full

// rate is how fast a bucket fills and how much it holds.
type rate struct{ perSecond, burst float64 }

// rateOf returns a rate with some seconds' worth of burst, which is at least least. No rate is no limit.
func rateOf(perSecond, seconds, least float64) rate {
	return rate{perSecond, max(least, perSecond*seconds)}
}

// spend takes n tokens, or as many as the bucket holds at most. It returns 0, or
// after how long they are there: then they are taken only where the caller waits for them.
func (b *tokenBucket) spend(r rate, n float64, waits bool) time.Duration {
	if r.perSecond <= 0 {
		return 0
	}
	cost := int64(min(n, r.burst) / r.perSecond * float64(time.Second))
	room := int64(r.burst / r.perSecond * float64(time.Second))
	for {
		now, full := agora.Ticks(), b.full.Load()
		next := full + cost
		if full == 0 || full < now {
			next = now + cost
		}
		after := time.Duration(max(0, next-now-room))
		if after > 0 && !waits || b.full.CompareAndSwap(full, next) {
			return after
		}
	}
}

// refund puts tokens back that were spent in vain.
func (b *tokenBucket) refund(r rate, n float64) {
	if r.perSecond > 0 && b.full.Load() != 0 {
		b.full.Add(-int64(min(n, r.burst) / r.perSecond * float64(time.Second)))
	}
}

// refill makes the bucket full: what was spent at another rate says nothing at this one.
func (b *tokenBucket) refill() { b.full.Store(0) }

// buckets are those of one who speaks: of messages, and of their bytes. The zero value is full.
type buckets struct{ messages, bytes tokenBucket }

// spend takes a message of so many bytes, or nothing: then it returns after how long both buckets may have it.
func (b *buckets) spend(messages, bytes rate, size float64) time.Duration {
	after := b.messages.spend(messages, 1, false)
	if after > 0 {
		return after
	}
	if after = b.bytes.spend(bytes, size, false); after > 0 {
		b.messages.refund(messages, 1)
	}
	return after
}

// reserve takes it whatever is left, and returns how long it must wait.
func (b *buckets) reserve(messages, bytes rate, size float64) time.Duration {
	return max(b.messages.spend(messages, 1, true), b.bytes.spend(bytes, size, true))
}

// refund puts back what was spent in vain.
func (b *buckets) refund(messages, bytes rate, size float64) {
	b.messages.refund(messages, 1)
	b.bytes.refund(bytes, size)
}

// refill makes both buckets full.
func (b *buckets) refill() {
	b.messages.refill()
	b.bytes.refill()
}
