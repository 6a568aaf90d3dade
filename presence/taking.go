package presence

import (
	"context"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// reserved is what an agent had before an address was reserved for a claim.
type reserved struct{ address, names string }

// taking is how an agent is given the address of d, or the names of what it reaches, which may be another agent's.
type taking struct {
	tenant string
	id     agora.AgentID
	d      *Dialled
	names  bool // not the address as it is written

	sure bool     // what has no entry is known to be nobody's
	void []string // entries of others that no record bears out
}

// call asks for them once.
func (t *taking) call() call {
	m := member(t.tenant, t.id)
	if !t.names {
		void := ""
		if n := len(t.void); n > 0 {
			void = t.void[n-1]
		}
		return call{addressTakeScript, []string{addressesKey(t.tenant)}, []any{t.d.Address, m, t.d.entry, flag(t.sure), void}}
	}
	args := []any{m, t.d.entry, flag(t.sure), len(t.void)}
	for _, held := range t.void {
		args = append(args, held)
	}
	for _, name := range t.d.Names {
		args = append(args, name)
	}
	return call{endpointTakeScript, endpointKeys, args}
}

// other returns who has one of them, as an answer says: by which name, by which entry, and how old that is.
func (t *taking) other(r reply) (name, held string, age time.Duration) {
	k := 1
	if t.names {
		name, k = r.at(1).str(), 2
	}
	return name, r.at(k).str(), time.Duration(r.at(k+1).int()) * time.Millisecond
}

// take gives an agent what is to be taken, and returns what its entry was before. An AddressError where it is
// another's; UNAVAILABLE for ErrIncomplete where it has no entry while the server is not whole.
func (s Dials) take(ctx context.Context, t *taking) (was string, err error) {
	for {
		r, err := s.runAll(ctx, []call{t.call(), {wholeScript, []string{wholeKey}, nil}})
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
			t.sure = true
		default:
			name, held, age := t.other(a)
			if err := s.owned(ctx, t.d.Address, name, held, age); err != nil {
				return "", err
			}
			t.void = append(t.void, held)
		}
	}
}

// owned returns an AddressError where an entry of such an age counts: its agent has a session that was dialled, or may
// have one soon. The entry is of the address, which must be that of the session, or of a name that the address reaches.
func (s Dials) owned(ctx context.Context, address, name, held string, age time.Duration) error {
	m, _, _ := strings.Cut(held, " ")
	tenant, by, _ := splitMember(m)
	taken := &AddressError{Address: address, Name: name, Tenant: tenant, By: by, Pending: true}
	r, err := s.fields(ctx, []entry{{member: m}}, "state", "dial")
	if err != nil {
		return err
	}
	d := parseDial(r[0].at(1).str(), "")
	if d != nil && (name != "" || d.Address == address) && r[0].at(0).str() != "0" {
		taken.Pending = false
		return taken
	}
	if age < s.settled {
		return taken
	}
	return s.sure(ctx)
}
