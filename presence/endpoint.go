package presence

import (
	"context"
	"errors"
	"strings"

	"github.com/agora-relay/agora"
)

// An address may be written in many ways, and by several tenants. So each name of what it reaches (package
// internal/endpoint) belongs to one agent of the cluster: "<member> <ms>" by the name, and "<entry> <name> …" by the
// member. An entry counts while its agent has a session that was dialled: see owned.

// endpointKeys are the keys of the names: of the agents that have them, and of those that each agent has.
var endpointKeys = []string{root + "{endpoints}", root + "{endpoints}:of"}

// reserveNames gives an agent the names of d besides those that it has, for the claim that follows, and returns what it
// had before.
func (s Dials) reserveNames(ctx context.Context, tenant string, id agora.AgentID, d *Dialled) (was string, err error) {
	if len(d.Names) == 0 {
		return "", nil
	}
	return s.take(ctx, &taking{tenant: tenant, id: id, d: d, names: true})
}

// setNames has an agent have the names of an entry and no others, where the entry that it has now begins so.
func (s Dials) setNames(ctx context.Context, tenant string, id agora.AgentID, begins, names string) error {
	_, err := s.run(ctx, call{endpointSetScript, endpointKeys, []any{member(tenant, id), begins, names}})
	return err
}

// namesOnly takes from an agent what an earlier address of it reached, once it has claimed with another.
func (s Dials) namesOnly(ctx context.Context, r ClaimRequest) {
	if err := s.setNames(ctx, r.Tenant, r.Agent, r.Dial.entry+" ", r.Dial.names()); err != nil {
		s.log.Debug("what an earlier address reached was not given back, which is tried again in a minute", "agent", r.Agent, "err", err)
	}
}

// names is the entry of what the address of d reaches.
func (d *Dialled) names() string { return d.entry + " " + strings.Join(d.Names, " ") }

// Reaches returns an AddressError where what a connection to an agent has reached, by its names, is another agent's:
// then it is not to be used. Two round trips where another one has it.
func (s Dials) Reaches(ctx context.Context, tenant string, id agora.AgentID, address string, names []string) error {
	if len(names) == 0 {
		return nil
	}
	all, err := s.rdb.HMGet(ctx, endpointKeys[0], names...).Result()
	if err != nil {
		return unavailable(err)
	}
	mine := member(tenant, id)
	for i, v := range all {
		held, _ := v.(string)
		m, _, is := strings.Cut(held, " ")
		if !is || m == mine {
			continue
		}
		err := s.owned(ctx, address, names[i], held, s.settled)
		if _, taken := errors.AsType[*AddressError](err); taken {
			return err
		}
	}
	return nil
}

// Renew has the session of an agent that was dialled have the names of what its address reaches now, and no others. An
// AddressError where another agent has one of them: then the session is to be ended, unless that is Pending. Three
// round trips.
func (s Dials) Renew(ctx context.Context, tenant string, id agora.AgentID, address string, names []string) error {
	m := member(tenant, id)
	r, err := s.fields(ctx, []entry{{member: m}}, "dial")
	if err != nil {
		return err
	}
	d := parseDial(r[0].at(0).str(), "")
	if d == nil || len(names) == 0 {
		return nil // another look finds it there, or gone
	}
	d.Address, d.Names = address, names
	if _, err := s.reserveNames(ctx, tenant, id, d); err != nil {
		return err
	}
	return s.setNames(ctx, tenant, id, d.entry+" ", d.names())
}
