package admission

import (
	"math"
	"slices"
)

// Tally adds up the bytes that an edge holds, by whom. The zero value is ready to use.
type Tally struct {
	nobody  int64 // for nobody in particular, or for somebody whom nobody has asked who it is
	tenants map[string]*tenantTally
}

// tenantTally is what is held for one tenant: for its principals, and for nobody in particular.
type tenantTally struct {
	all        int64
	principals map[string]int64
}

// Add adds bytes that are held for an owner. They are nobody's where it has no tenant, or is an agent of whom nobody
// has asked who it is, and a tenant's alone where it is neither agent nor principal.
func (t *Tally) Add(o Owner, n int64) {
	if o.Tenant == "" || o.Principal == "" && o.Agent != "" {
		t.nobody += n
		return
	}
	of := t.tenants[o.Tenant]
	if of == nil {
		of = &tenantTally{principals: map[string]int64{}}
		if t.tenants == nil {
			t.tenants = map[string]*tenantTally{}
		}
		t.tenants[o.Tenant] = of
	}
	of.all += n
	if o.Principal != "" {
		of.principals[o.Principal] += n
	}
}

// total returns the sum of all.
func (t *Tally) total() int64 {
	sum := t.nobody
	for _, of := range t.tenants {
		sum += of.all
	}
	return sum
}

// excess is what a principal holds beyond its share.
type excess struct{ held, most int64 }

// leastPart is the part of a limit that each principal may hold, whatever its tenant does.
const leastPart = 1024

// judge holds a tally against a limit. Tenants share seven eighths of what is not nobody's, and a tenant's principals
// six sevenths of what the other tenants leave it, less what is the tenant's own. Where that is too little for all,
// those that hold most are cut to one level, and nobody below it pays. counted is what is held, of each tenant no more
// than its share; over has the principals that hold more than theirs.
func (t *Tally) judge(limit int64) (counted int64, over map[Owner]excess) {
	capacity := shareOf(limit-t.nobody, tenantOf, tenantIn)
	sizes, shared := make([]int64, 0, len(t.tenants)+1), int64(0)
	for _, of := range t.tenants {
		sizes = append(sizes, of.all)
	}
	level := levelOf(sizes, capacity)
	for _, of := range t.tenants {
		shared += min(of.all, level)
	}
	fair := levelOf(append(sizes, capacity), capacity) // what one more that takes all it may would have
	over = map[Owner]excess{}
	for name, of := range t.tenants {
		room := max(capacity-(shared-min(of.all, level)), fair)
		of.judge(name, shareOf(room, principalOf, principalIn), limit/leastPart, over)
	}
	return t.nobody + shared, over
}

// judge adds the principals of a tenant that hold more than their share of some room.
func (t *tenantTally) judge(tenant string, room, least int64, over map[Owner]excess) {
	own, sizes := t.all, make([]int64, 0, len(t.principals))
	for _, held := range t.principals {
		own -= held
		sizes = append(sizes, held)
	}
	most := max(levelOf(sizes, room-own), least)
	for name, held := range t.principals {
		if held > most {
			over[Owner{Tenant: tenant, Principal: name}] = excess{held, most}
		}
	}
}

// levelOf returns the level at which sizes are cut so that together they fit a capacity; the largest number where they
// do as they are.
func levelOf(sizes []int64, capacity int64) int64 {
	slices.Sort(sizes)
	left := max(capacity, 0)
	for i, size := range sizes {
		if each := left / int64(len(sizes)-i); size > each {
			return each
		}
		left -= size
	}
	return math.MaxInt64
}
