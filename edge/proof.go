package edge

import "sync/atomic"

// Proof is how a connection proves that what was written to it has arrived.
type Proof int32

// The proofs.
const (
	ByPong   Proof = iota // the pong of a ping that went behind it, until the agent acknowledges for the first time: from then on ByAck
	ByAck                 // Ack alone
	ByWrite               // being written: the door knows by its protocol, when it calls Written, that its peer has it
	ByReader              // Ack alone, and nothing counts as delivered before: Written says only that readers behind the door were handed it
	ByReturn              // the position with which the agent comes back, or Ack; those who write to it take what was written for read meanwhile
)

// proof is how a connection proves it now.
type proof struct{ now atomic.Int32 }

func (p *proof) set(to Proof) { p.now.Store(int32(to)) }

func (p *proof) is(one Proof) bool { return Proof(p.now.Load()) == one }

// acks notes that the agent acknowledges by itself.
func (p *proof) acks() (news bool) {
	news = p.is(ByPong) || p.is(ByWrite)
	if news {
		p.set(ByAck)
	}
	return news
}
