package edge

import (
	"context"
	"sync/atomic"

	"github.com/agora-relay/agora"
)

// Pong takes the data of a pong. The pong of the last confirming ping proves
// that what was written before it has arrived: frames keep their order.
func (i *inbound) Pong(data uint64) {
	i.Alive()
	if data&probeMark != 0 {
		i.keepalive.answered.Store(uint32(data))
		return
	}
	if i.cursor.pong(data) {
		i.owed.Load().acked()
		i.markMoved()
	}
}

// Beat notes a sign of life that the agent gives by a frame. It waits where they come faster than the agent may speak.
func (i *inbound) Beat(ctx context.Context) error { return i.out.beside(ctx) }

// IdlePong is Pong where that has nothing to do: it returns false, and has done nothing, where the pong confirms or
// answers something.
func (i *inbound) IdlePong(data uint64) bool {
	if data&probeMark != 0 || i.cursor.awaitsPong() {
		return false
	}
	i.Alive()
	return true
}

// ack notes that everything up to a position has arrived: of the mailbox, or
// of a space where one is named. It blocks, for a round trip to the log, only when the position is one
// of a space that the agent was in before, and news to this edge.
func (i *inbound) ack(ctx context.Context, space string, seq uint64) error {
	if space != "" {
		return i.ackSpace(ctx, space, seq)
	}
	news, err := i.cursor.ack(seq)
	if err != nil {
		return err
	}
	if !news {
		return i.out.beside(ctx)
	}
	i.owed.Load().acked()
	i.markMoved()
	return nil
}

func (i *inbound) ackSpace(ctx context.Context, space string, seq uint64) error {
	p, before := i.cursor.subscription(space) // up to where it may have been delivered
	if p == nil {
		return agora.Errorf(agora.InvalidRequest, "ack: not a member of space %q", space)
	}
	if p.resumed { // asked without the lock: the subscription has one of its own
		tail, _, _ := p.Tail()
		before = max(before, wholeRecord(tail))
	}
	if p.resumed && seq > before { // an edge before this one may have heard of more
		last, err := i.lastEvent(ctx, space)
		if err != nil {
			return err
		}
		before = max(before, wholeRecord(last))
	}
	news, err := i.cursor.ackSpace(p, seq, before)
	if err != nil {
		return err
	}
	if !news {
		return i.out.beside(ctx)
	}
	i.markMoved()
	return nil
}

// wholeRecord returns the last position of the record that seq is in, 0 for 0: a join is answered by that, and an edge
// before this one may have answered it.
func wholeRecord(seq uint64) uint64 {
	if seq == 0 {
		return 0
	}
	return seq | (1<<agora.SeqShift - 1)
}

// lastEvent returns the position of the last event of a space, read from the log.
func (i *inbound) lastEvent(ctx context.Context, space string) (uint64, error) {
	ctx, done := i.out.patient(ctx)
	defer done()
	last, err := i.node.cfg.Broker.Last(ctx, agora.ToSpace(i.claim.Tenant, space))
	if err != nil {
		return 0, agora.AsError(err)
	}
	return last, nil
}

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
