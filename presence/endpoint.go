package presence

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// An address may be written in many ways, and by several tenants. So each name of what it reaches (package internal/endpoint) belongs to one agent of the
// cluster: "<member> <ms>" by the name, and "<entry> <name> …" by the member. An entry counts while its agent has a session that was dialled: see owned.

// endpointKeys are the keys of the names: of the agents that have them, and of those that each agent has.
var endpointKeys = []string{root + "{endpoints}", root + "{endpoints}:of"}

// reserved is what an agent had before an address was reserved for a claim.
type reserved struct{ address, names string }

// reserveNames gives an agent the names of d besides those that it has, for the claim that follows, and returns what it had before.
func (s Dials) reserveNames(ctx context.Context, tenant string, id agora.AgentID, d *Dialled) (was string, err error) {
	if len(d.Names) == 0 {
		return "", nil
	}
	sure, void := false, []string(nil)
	for {
		r, err := s.runAll(ctx, []call{
			{endpointTakeScript, endpointKeys, takeArgs(member(tenant, id), d, sure, void)},
			{wholeScript, []string{wholeKey}, nil},
		})
		if err != nil {
			return "", err
		}
		switch a := r[0]; a.at(0).str() {
		case "ok":
			return a.at(1).str(), nil
		case "unsure":
			if err := s.surely(ctx, r[1].yes()); err != nil {
				return "", err
			}
			sure = true
		default:
			held := a.at(2).str()
			if err := s.nameOwned(ctx, d.Address, a.at(1).str(), held, time.Duration(a.at(3).int())*time.Millisecond); err != nil {
				return "", err
			}
			void = append(void, held)
		}
	}
}

func takeArgs(m string, d *Dialled, sure bool, void []string) []any {
	args := []any{m, d.entry, flag(sure), len(void)}
	for _, held := range void {
		args = append(args, held)
	}
	for _, name := range d.Names {
		args = append(args, name)
	}
	return args
}

// nameOwned returns an AddressError where an entry of such an age counts: its agent has a session that was dialled, or may have one soon.
func (s Dials) nameOwned(ctx context.Context, address, name, held string, age time.Duration) error {
	m, _, _ := strings.Cut(held, " ")
	tenant, by, _ := splitMember(m)
	taken := &AddressError{Address: address, Name: name, Tenant: tenant, By: by, Pending: true}
	r, err := s.fields(ctx, []entry{{member: m}}, "state", "dial")
	if err != nil {
		return err
	}
	if d := parseDial(r[0].at(1).str(), ""); d != nil && r[0].at(0).str() != "0" {
		taken.Pending = false
		return taken
	}
	if age < s.settled {
		return taken
	}
	return s.sure(ctx)
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

// Reaches returns an AddressError where what a connection to an agent has reached, by its names, is another agent's: then it is not to be used. Two round
// trips where another one has it.
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
		err := s.nameOwned(ctx, address, names[i], held, s.settled)
		if _, taken := errors.AsType[*AddressError](err); taken {
			return err
		}
	}
	return nil
}

// Renew has the session of an agent that was dialled have the names of what its address reaches now, and no others. An AddressError where another agent has
// one of them: then the session is to be ended, unless that is Pending. Three round trips.
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
