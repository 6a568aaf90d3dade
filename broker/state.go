package broker

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/agora-relay/agora/broker/record"
	"github.com/nats-io/nats.go/jetstream"
)

// streamState is what the leader knows of a stream and of one subject in it.
type streamState struct {
	created time.Time
	at      time.Time // when that was so, by the leader's clock
	last    uint64    // last sequence handed out
	count   int64     // records of the subject
	first   uint64    // first sequence that is kept
	records uint64    // kept in the whole stream, fences included
	bytes   uint64    // they take
	leader  string    // who it is and since when: another one has another
}

// errNotLed means that a server answered for a stream that it does not lead: one that has just started, or any while
// there is no leader. It knows no more than what it has caught up with.
var errNotLed = errors.New("the stream has no leader, or another server answered for it")

// raft is how a cluster stands to a stream, by the word of one server.
type raft struct {
	Leader   string `json:"leader"`
	Since    string `json:"leader_since"`
	Replicas []struct {
		Name string `json:"name"`
	} `json:"replicas"` // the servers that have the stream, but for the one that says so
}

// led reports whether it is the leader's own word.
func (r *raft) led() bool {
	for _, other := range r.Replicas {
		if other.Name == r.Leader {
			return false
		}
	}
	return r.Leader != ""
}

// state asks the stream's leader, and sets the clock by its answer.
func (c *logClient) state(ctx context.Context, stream, subject string) (streamState, error) {
	var v struct {
		Error   *jetstream.APIError `json:"error"`
		Created time.Time           `json:"created"`
		Time    time.Time           `json:"ts"`
		Cluster *raft               `json:"cluster"` // nil where there is one server alone
		State   struct {
			First    uint64           `json:"first_seq"`
			Last     uint64           `json:"last_seq"`
			Messages uint64           `json:"messages"`
			Bytes    uint64           `json:"bytes"`
			Subjects map[string]int64 `json:"subjects"`
		} `json:"state"`
	}
	var req map[string]any
	if subject != "" {
		req = map[string]any{"subjects_filter": subject}
	}
	sent := time.Now()
	if err := c.api(ctx, "STREAM.INFO."+stream, req, &v); err != nil {
		return streamState{}, err
	}
	c.cfg.Clock.hear(stream, sample{sent: sent, got: time.Now(), log: v.Time})
	if v.Error != nil {
		return streamState{}, fmt.Errorf("state of %s: %w", stream, v.Error)
	}
	s := streamState{
		created: v.Created, at: v.Time, last: v.State.Last, count: v.State.Subjects[subject], leader: "/",
		first: v.State.First, records: v.State.Messages, bytes: v.State.Bytes,
	}
	if c := v.Cluster; c != nil {
		if !c.led() {
			return streamState{}, fmt.Errorf("state of %s: %w", stream, errNotLed)
		}
		s.leader = c.Leader + "/" + c.Since
	}
	return s, nil
}

// api asks JetStream something.
func (c *logClient) api(ctx context.Context, what string, req map[string]any, answer any) (err error) {
	ctx, cancel := c.within(ctx, c.cfg.Read)
	defer cancel()
	var body []byte
	if req != nil {
		if body, err = json.Marshal(req); err != nil {
			return err
		}
	}
	resp, err := c.nc.RequestWithContext(ctx, "$JS.API."+what, body)
	if err != nil {
		return fmt.Errorf("asking %s: %w", what, err)
	}
	if err := json.Unmarshal(resp.Data, answer); err != nil {
		return fmt.Errorf("answer of %s: %w", what, err)
	}
	return nil
}

// forgets reports whether what was stored right after a time may be too old to be kept. Clocks may be apart.
func (c *logClient) forgets(at time.Time) bool {
	return at.IsZero() || c.cfg.Clock.now().Sub(at) > c.cfg.MaxAge-min(record.VoidAfter-record.DoubtAfter, c.cfg.MaxAge/10)
}
