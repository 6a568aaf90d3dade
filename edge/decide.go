package edge

import (
	"context"

	"github.com/agora-relay/agora"
)

// decide decides an approval by a reply of the session's agent, and reports whether it is one: numbers before its own are settled first, as its receipt speaks
// of them as well. What it answered when it came it answers then, though another has decided meanwhile.
func (s mailer) decide(ctx context.Context, m *agora.Message, w Want) (is bool, err error) {
	box := s.node.approvals.of(m)
	if box == "" {
		return false, nil
	}
	if m.To.IsBox() && m.Meta.Parent == "" && s.node.approvals.book.IsDecided(m.To.Tenant, box) && !s.out.sender().HasDecided(box) {
		m.To = m.To.Peer() // what it could answer is pending no more
		return false, nil
	}
	peer := m.To.Peer()
	if m.N > 0 {
		if err := s.out.sender().Flush(ctx); err != nil {
			return true, agora.AsError(err)
		}
	}
	if err := s.node.approvals.decide(ctx, box, m); err != nil {
		return true, agora.AsError(err)
	}
	s.out.sender().Decided(box, m)
	s.out.sender().Used(peer, m.N)
	if m.N > 0 {
		s.out.receipts.add(Notice{Kind: NoticeReceipt, Tier: agora.Stored, To: peer, N: m.N}, s.conn)
		return true, nil
	}
	s.out.toldStored(peer, w)
	return true, nil
}
