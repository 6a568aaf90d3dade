package admission

import (
	"time"

	"github.com/agora-relay/agora"
)

// Level is who holds something: an agent alone, all agents of a principal, all principals of a tenant, or everybody.
type Level uint8

const (
	OfAgent Level = iota
	OfPrincipal
	OfTenant
	OfWhole

	Levels // how many there are
)

// String returns the name of a level, as metrics and errors have it.
func (l Level) String() string { return [...]string{"agent", "principal", "tenant", "whole"}[l] }

// Held is how much of a resource is held at each level: by an agent, by its principal, by its tenant, and by everybody.
// It is below nothing at a level that there is not: what nobody in particular holds is of no principal.
type Held [Levels]int64

// Bound is how much of a resource may be held. 0 stands for no bound of its own.
type Bound struct {
	Agent     int64 // by one agent
	Principal int64 // by one principal, beside its share of the whole
	Whole     int64 // by everybody
}

// Shares of a whole. A tenant may hold seven eighths of what other tenants don't hold of it, and a principal six
// sevenths of what its tenant may and other principals don't: one that is alone three quarters of the whole. So however
// many of them take what they may, something is free for the one who comes next. Shares are rounded up.
const (
	tenantOf, tenantIn       = 7, 8
	principalOf, principalIn = 6, 7
)

// TenantShare and PrincipalShare are the shares as packages have them that count by themselves.
var (
	TenantShare    = [2]int64{tenantOf, tenantIn}
	PrincipalShare = [2]int64{principalOf, principalIn}
)

// shareOf returns of/in of n, rounded up, and nothing of less than nothing.
func shareOf(n, of, in int64) int64 { return (max(n, 0)*of + in - 1) / in }

// Most returns how much may be held at each level, where so much is held. No bound is the largest number.
func (b Bound) Most(held Held) Held {
	const none = 1<<62 - 1
	most := Held{none, none, none, none}
	if b.Agent > 0 {
		most[OfAgent] = b.Agent
	}
	if b.Principal > 0 {
		most[OfPrincipal] = b.Principal
	}
	if b.Whole > 0 {
		most[OfWhole] = b.Whole
		most[OfTenant] = shareOf(b.Whole-(held[OfWhole]-held[OfTenant]), tenantOf, tenantIn)
	}
	switch others := held[OfTenant] - held[OfPrincipal]; {
	case held[OfPrincipal] < 0:
		most[OfPrincipal] = none
	case b.Whole > 0:
		most[OfPrincipal] = min(most[OfPrincipal], shareOf(most[OfTenant]-others, principalOf, principalIn))
	}
	return most
}

// Refuses returns the level at which n more would be more than may be held; false where there is none. Of several it is
// the largest, but an agent's own bound comes first.
func (b Bound) Refuses(held Held, n int64) (Level, bool) {
	most := b.Most(held)
	for _, l := range [...]Level{OfAgent, OfWhole, OfTenant, OfPrincipal} {
		if held[l]+n > most[l] {
			return l, true
		}
	}
	return 0, false
}

// Refusal is what is told where a level holds as much of a resource as it may: RATE_LIMITED, with the level.
func (r Resource) Refusal(l Level) *agora.Error {
	text := "this " + l.String() + " has as many " + table[r].held + " as it may"
	if l == OfWhole {
		text = table[r].full
	}
	return &agora.Error{Code: agora.RateLimited, Message: text, RetryAfter: heldRetry}
}

// heldRetry is when it makes sense to try again where as much is held as may be.
const heldRetry = time.Second
