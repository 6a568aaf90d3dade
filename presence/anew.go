package presence

import "context"

// Anew has the session of a claim go on under another id, and returns the claim under it: what it receives stays as it
// is, and it has used no lane. That is for an agent that is a new process for what it sends. The caller has ended the
// lanes of the old id: nobody knows of them any more. ErrDeposed. It may be repeated. Two round trips.
func (s Sessions) Anew(ctx context.Context, c Claim, session string, spaces []string) (Claim, error) {
	k := c.keys()
	r, err := s.run(ctx, call{anewScript, []string{k.rec, k.lanes}, []any{c.Epoch, session}})
	if err != nil {
		return c, err
	}
	if !r.yes() {
		return c, ErrDeposed
	}
	c.Session = session
	calls := make([]call, 0, len(spaces)) // should they not be made, the epoch says whose memberships they are
	for _, name := range spaces {
		calls = append(calls, s.spaces.join(c, name, "", false, joinsAgain))
	}
	if len(calls) > 0 {
		_, err = s.runAll(ctx, calls)
	}
	return c, err
}
