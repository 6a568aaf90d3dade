package presence

import (
	"context"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
)

// Spending is what is taken from one of the two buckets of an agent, which fill at a rate.
type Spending struct {
	Rate float64 // per second; 0 for no limit
	Room float64 // what the bucket holds
	Need int64   // nothing is taken where there is less
	Want int64   // taken where it is there; Need at least
}

// Quotas is how much agents may say at all edges together.
type Quotas struct{ *backend }

// Spend takes from what an agent may say at all edges together, and returns what was taken of messages and of bytes; or
// after how long what is needed is there, and then nothing was taken. It lasts for as long as the buckets take to be
// full again, and is gone with what else the server loses. One round trip. UNAVAILABLE.
func (s Quotas) Spend(ctx context.Context, tenant string, id agora.AgentID, messages, bytes Spending) (m, b int64, wait time.Duration, err error) {
	key := keysOf(member(tenant, id), "").tag + "spent"
	r, err := s.run(ctx, call{spendScript, []string{key}, append(messages.args(), bytes.args()...)})
	if err != nil {
		return 0, 0, 0, err
	}
	return r.at(0).int(), r.at(1).int(), time.Duration(r.at(2).int()) * time.Microsecond, nil
}

func (p *Spending) args() []any {
	return []any{strconv.FormatFloat(p.Rate, 'f', -1, 64), strconv.FormatFloat(p.Room, 'f', -1, 64), p.Need, p.Want}
}
