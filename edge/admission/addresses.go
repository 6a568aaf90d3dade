package admission

import (
	"hash/maphash"
	"net/netip"
	"time"
)

// countedAddress is what an address is counted by. One that can't be read counts as the unspecified one.
func countedAddress(a netip.Addr) netip.Addr {
	a = a.Unmap().WithZone("")
	switch {
	case !a.IsValid():
		return netip.IPv6Unspecified()
	case a.Is4():
		return a
	}
	return netip.PrefixFrom(a, 64).Masked().Addr()
}

// addressBuckets are the token buckets of all addresses that there may be, in a table of one
// size: each address has two of them, by a hash that nobody outside can foretell, and is refused when
// both are empty. A flood from many addresses empties some buckets of others, but seldom both of one.
type addressBuckets struct {
	seed  maphash.Seed
	table []tokenBucket
}

const addressBucketCount = 1 << 15 // 256 KiB

func newAddressBuckets() addressBuckets {
	return addressBuckets{seed: maphash.MakeSeed(), table: make([]tokenBucket, addressBucketCount)}
}

// refill makes every bucket full.
func (b *addressBuckets) refill() {
	for k := range b.table {
		b.table[k].refill()
	}
}

// spend takes a token of an address, or says when there is one.
func (b *addressBuckets) spend(a netip.Addr, r rate) time.Duration {
	if r.perSecond <= 0 {
		return 0
	}
	h := maphash.Comparable(b.seed, a)
	one, two := &b.table[h%addressBucketCount], &b.table[h>>32%addressBucketCount]
	first, second := one.spend(r, 1, false), two.spend(r, 1, false)
	if first > 0 && second > 0 {
		return min(first, second)
	}
	return 0
}
