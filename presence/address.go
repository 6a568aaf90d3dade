package presence

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// Dialled is how the connection of a session comes about that its edge makes, and not its agent.
type Dialled struct {
	Address string   // which no other agent of the tenant has while the session lasts
	Names   []string // of what the address reaches, which no other agent of any tenant has; not kept in the session's record
	By      []byte   // for whom it is made, in words of the edges

	entry string // tells the address's entry from earlier ones of the same agent
}

// AddressError is the error of a claim whose address is another agent's, be it in other words, or in another tenant.
type AddressError struct {
	Address string // as the claim has it
	Name    string // of what it reaches, where that is what the other one has; empty where it is the address as it is written
	Tenant  string // of the other one
	By      agora.AgentID
	Pending bool // that one's own claim is under way, or failed within the last minute
}

func (e *AddressError) Error() string {
	return fmt.Sprintf("address %q is that of agent %q", e.Address, e.By)
}

// addressesKey is the hash of the addresses that agents of a tenant have: "<member> <entry> <ms>". An entry is written
// before the claim that it is for, whose record decides: see owned. What no record bears out is void when no claim on
// its way can still be meant.
func addressesKey(tenant string) string {
	return root + "{addresses:" + agora.EncodeToken(tenant) + "}"
}

// stored is a dial as a record has it; empty for none.
func (d *Dialled) stored() string {
	if d == nil {
		return ""
	}
	return d.entry + " " + d.Address
}

// by is for whom, as a record has it.
func (d *Dialled) by() string {
	if d == nil {
		return ""
	}
	return string(d.By)
}

// parseDial reads what a record has; nil for none.
func parseDial(dial, by string) *Dialled {
	entry, address, ok := strings.Cut(dial, " ")
	if !ok {
		return nil
	}
	return &Dialled{Address: address, By: []byte(by), entry: entry}
}

// Dials is the sessions whose connections their edges make: the addresses of their agents, and which edge continues
// with one that has lost its own.
type Dials struct {
	*backend
	leases Leases
}

// reserve gives an agent the address of d, for the claim that follows, and returns what its entry was before. An
// AddressError where another agent has it. No entry, while the server is not whole: UNAVAILABLE for ErrIncomplete.
func (s Dials) reserve(ctx context.Context, tenant string, id agora.AgentID, d *Dialled) (was reserved, err error) {
	if was.address, err = s.take(ctx, &taking{tenant: tenant, id: id, d: d}); err != nil {
		return was, err
	}
	if was.names, err = s.reserveNames(ctx, tenant, id, d); err != nil {
		s.unreserveAddress(ctx, tenant, id, d, was.address)
	}
	return was, err
}

// unreserve makes the entries what they were before they were reserved for a claim that failed.
func (s Dials) unreserve(ctx context.Context, tenant string, id agora.AgentID, d *Dialled, was reserved) {
	s.unreserveAddress(ctx, tenant, id, d, was.address)
	if err := s.setNames(ctx, tenant, id, d.entry+" ", was.names); err != nil {
		s.log.Debug("what an address reaches was not given back, and is free in a minute", "agent", id, "err", err)
	}
}

func (s Dials) unreserveAddress(ctx context.Context, tenant string, id agora.AgentID, d *Dialled, was string) {
	if err := s.freeAddress(ctx, tenant, id, d, was); err != nil {
		s.log.Debug("address was not given back, and is free in a minute", "agent", id, "err", err)
	}
}

// FreeAddress frees the address of a session that is over and was dialled: any agent may have it from now on. Should
// nobody do so, it is free in a minute.
func (s Dials) FreeAddress(ctx context.Context, c Claim, d Dialled) error {
	return errors.Join(s.freeAddress(ctx, c.Tenant, c.Agent, &d, ""), s.setNames(ctx, c.Tenant, c.Agent, d.entry+" ", ""))
}

// freeAddress drops the entry of an address, or puts another in its place, where it is that of d.
func (s Dials) freeAddress(ctx context.Context, tenant string, id agora.AgentID, d *Dialled, was string) error {
	_, err := s.run(ctx, call{addressFreeScript, []string{addressesKey(tenant)}, []any{d.Address, member(tenant, id) + " " + d.entry + " ", was}})
	return err
}

// SetBy replaces for whom the connection of a session is made. ErrDeposed when the claim is no longer c's, or its
// session has another connection.
func (s Dials) SetBy(ctx context.Context, c Claim, by []byte) error {
	return s.asHolder(ctx, call{dialByScript, []string{c.keys().rec}, []any{strconv.FormatUint(c.Epoch, 10), string(by)}})
}
