package presence

import (
	"context"
	"slices"
)

// Superseded returns those of claims whose sessions another holder has begun since, or that are over: nothing is to be
// written again of them (Reassert). A claim that was only made takes nothing from one before it, as its agent may never
// hear of it; of one that the server does not know there is nothing to say. One pipeline for every few hundred. With an
// error it returns what it has found before.
func (s Sessions) Superseded(ctx context.Context, claims []Claim) (over []Claim, err error) {
	for chunk := range slices.Chunk(claims, batch) {
		es := make([]entry, len(chunk))
		for i, c := range chunk {
			es[i].member = member(c.Tenant, c.Agent)
		}
		records, err := s.fields(ctx, es, "epoch", "begun", "session")
		if err != nil {
			return over, err
		}
		for i, r := range records {
			c := chunk[i]
			later := r.at(1).uint() > c.Epoch || r.at(2).str() != c.Session
			if r.at(0).uint() > c.Epoch && later {
				over = append(over, c)
			}
		}
	}
	return over, nil
}
