package edge

import "github.com/agora-relay/agora/edge/admission"

// LetIn is [Node.Admit] for a connection whose peer has proven by no credentials who it is, and speaks as the actor. It has arrived already, as its permit says. RATE_LIMITED, UNAVAILABLE. On
// success the caller owes a call of Release, which releases the permit as well.
func (a *Actor) LetIn(arrived *admission.Permit) (Admission, error) {
	slot, err := a.node.limits.Shedder.Acquire()
	if err == nil {
		if err = a.countConnection(arrived, slot); err == nil {
			return Admission{Actor: a, slot: slot, permit: arrived}, nil
		}
		slot.Release()
	}
	return Admission{}, err
}
