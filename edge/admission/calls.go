package admission

import "github.com/agora-relay/agora"

// OpenCall counts a call to an agent: among those that its owner has open, and among those that are open for the agent.
// RATE_LIMITED where there are as many as may be. The caller owes a [Usage.CloseCall].
func (u *Usage) OpenCall(o Owner, to agora.Address) error {
	err := u.Take(Calls, o, 1)
	if err != nil {
		return err
	}
	if err = u.Take(CallsFor, o.of(to), 1); err != nil {
		u.Give(Calls, o, 1)
	}
	return err
}

// CloseCall counts it no more.
func (u *Usage) CloseCall(o Owner, to agora.Address) {
	u.Give(Calls, o, 1)
	u.Give(CallsFor, o.of(to), 1)
}

// of is the owner of a share of what is another's.
func (o Owner) of(at agora.Address) Owner {
	o.Of = at
	return o
}
