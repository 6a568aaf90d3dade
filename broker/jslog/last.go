package jslog

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/synadia-io/orbit.go/natsext"
)

// LastSequences returns the sequence of the last message of each subject that has one at from or later. It waits so long for all of it at most.
func (c *Client) LastSequences(ctx context.Context, wait time.Duration, stream string, subjects []string, from uint64) (map[string]uint64, error) {
	ctx, cancel := c.within(ctx, wait)
	defer cancel()
	req, err := json.Marshal(struct {
		Subjects []string `json:"multi_last"`
		From     uint64   `json:"seq,omitempty"`
	}{subjects, from})
	if err != nil {
		return nil, err
	}
	var end *nats.Msg
	answer, err := natsext.RequestMany(ctx, c.nc, "$JS.API.DIRECT.GET."+stream, req, natsext.RequestManySentinel(func(m *nats.Msg) bool {
		if len(m.Data) == 0 && m.Header.Get("Status") != "" { // no record is empty
			end = m
		}
		return end != nil
	}))
	if err != nil {
		return nil, err
	}
	last, before := map[string]uint64{}, uint64(0)
	for m, err := range answer {
		if err != nil {
			return nil, err
		}
		if Number(m.Header, "Nats-Last-Sequence") != before { // each names the one before it in the answer
			return nil, ErrSilent
		}
		before = Number(m.Header, "Nats-Sequence")
		if of := m.Header["Nats-Subject"]; len(of) > 0 {
			last[of[len(of)-1]] = before
		}
	}
	switch {
	case end == nil:
		return nil, ErrSilent
	case end.Header.Get("Status") == noneStatus && len(last) == 0:
		return last, nil
	case end.Header.Get("Status") != endStatus || Number(end.Header, "Nats-Last-Sequence") != before || Number(end.Header, "Nats-Num-Pending") != 0:
		return nil, errors.New("the last messages of " + stream + ": " + end.Header.Get("Description"))
	}
	return last, nil
}

// What ends an answer of many messages.
const (
	endStatus  = "204" // that was all
	noneStatus = "404" // there is none
)
