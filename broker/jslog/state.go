package jslog

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	"github.com/nats-io/nats.go/jetstream"

	"github.com/agora-relay/agora/broker/record"
)

// State is what the leader knows of a stream and of one subject in it.
type State struct {
	Created time.Time
	At      time.Time // when that was so, by the leader's clock
	Last    uint64    // last sequence handed out
	Count   int64     // records of the subject
	First   uint64    // first sequence that is kept
	Records uint64    // kept in the whole stream, fences included
	Bytes   uint64    // they take
	Leader  string    // who it is and since when: another one has another
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

// Counts returns how many records stand under each subject that a filter matches, as the stream's leader knows it.
func (c *Client) Counts(ctx context.Context, stream, filter string) (map[string]int64, error) {
	all := map[string]int64{}
	for {
		var v struct {
			Error *jetstream.APIError `json:"error"`
			Total int                 `json:"total"`
			State struct {
				Subjects map[string]int64 `json:"subjects"`
			} `json:"state"`
		}
		if err := c.api(ctx, "STREAM.INFO."+stream, map[string]any{"subjects_filter": filter, "offset": len(all)}, &v); err != nil {
			return nil, err
		}
		if v.Error != nil {
			return nil, fmt.Errorf("state of %s: %w", stream, v.Error)
		}
		before := len(all)
		maps.Copy(all, v.State.Subjects)
		if len(all) == before || len(all) >= v.Total {
			return all, nil
		}
	}
}

// State asks the stream's leader, and sets the clock by its answer.
func (c *Client) State(ctx context.Context, stream, subject string) (State, error) {
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
		return State{}, err
	}
	c.cfg.Clock.Hear(stream, Sample{Sent: sent, Got: time.Now(), Log: v.Time})
	if v.Error != nil {
		return State{}, fmt.Errorf("state of %s: %w", stream, v.Error)
	}
	s := State{
		Created: v.Created, At: v.Time, Last: v.State.Last, Count: v.State.Subjects[subject], Leader: "/",
		First: v.State.First, Records: v.State.Messages, Bytes: v.State.Bytes,
	}
	if c := v.Cluster; c != nil {
		if !c.led() {
			return State{}, fmt.Errorf("state of %s: %w", stream, errNotLed)
		}
		s.Leader = c.Leader + "/" + c.Since
	}
	return s, nil
}

// NothingEvicted reports whether nothing is gone from a log that was stored after the record at floor, or from a time
// on.
func (c *Client) NothingEvicted(ctx context.Context, p *Location, floor uint64, at time.Time) (bool, error) {
	if floor > 0 {
		oldest, err := c.Next(ctx, p.Stream, p.Log(), 1)
		if err != nil && !errors.Is(err, ErrNone) {
			return false, err
		}
		if err == nil && (oldest.Seq <= floor || oldest.At.Before(at.Add(record.DoubtAfter-record.VoidAfter))) { // clocks may be that far apart
			return true, nil
		}
	}
	s, err := c.State(ctx, p.Stream, p.Log())
	return err == nil && s.Count < c.cfg.MaxRecords, err
}

// Forgets reports whether what was stored right after a time may be too old to be kept. Clocks may be apart.
func (c *Client) Forgets(at time.Time) bool {
	return at.IsZero() || c.cfg.Clock.Now().Sub(at) > c.cfg.MaxAge-min(record.VoidAfter-record.DoubtAfter, c.cfg.MaxAge/10)
}

// Drop drops what an address's log keeps before a sequence, and returns how many records that were.
func (c *Client) Drop(ctx context.Context, p Location, before uint64) (records int, err error) {
	var v struct {
		Error  *jetstream.APIError `json:"error"`
		Purged int                 `json:"purged"`
	}
	what := map[string]any{"filter": p.Log()}
	if before > 0 {
		what["seq"] = before
	}
	if err := c.api(ctx, "STREAM.PURGE."+p.Stream, what, &v); err != nil {
		return 0, Unavailable(err)
	}
	if v.Error != nil {
		return 0, Unavailable(v.Error)
	}
	return v.Purged, nil
}
