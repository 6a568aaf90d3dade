package presence

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// keepCancelled is how many cancelled streams are kept with an agent.
const keepCancelled = 256

// Lanes is which lanes sessions have used, and the streams that are open on them, or were cancelled.
type Lanes struct{ *backend }

// Use writes the lane, and the start of a stream unless open is nil, into
// the session, before anything is sent on it. ErrDeposed.
func (s Lanes) Use(ctx context.Context, c Claim, to agora.Address, open *OpenStream) error {
	k, lane := c.keys(), laneField(to)
	args := []any{c.Epoch, lane, ""}
	if open != nil {
		args = append(args, streamField(lane, open.Stream), open.value())
	}
	return s.asHolder(ctx, call{laneScript, []string{k.rec, k.lanes}, args})
}

// CloseStreams takes ended streams out, and the lane too where that leads to the box of a call. Best effort: one that
// stays is found to have ended when the lane is read, unless retention has cut the log. Who is deposed may do so while
// the next holder waits for it to hand over.
func (s Lanes) CloseStreams(ctx context.Context, c Claim, to agora.Address, streams []string) error {
	k, lane := c.keys(), laneField(to)
	args := []any{c.Epoch}
	for _, st := range streams {
		args = append(args, streamField(lane, st))
	}
	if to.IsBox() { // for one answer alone
		args = append(args, lane)
	}
	return s.asHolder(ctx, call{closeScript, []string{k.rec, k.lanes, k.unsettled}, args})
}

// Cancel notes that the agent cancelled a peer's stream (kept with the agent,
// not with the session; the newest 256).
func (s Lanes) Cancel(ctx context.Context, c Claim, st Stream) error {
	k := c.keys()
	return s.asHolder(ctx, call{cancelScript, []string{k.rec, k.cancelled},
		[]any{c.Epoch, cancelField(st.Peer, st.Stream), st.Seq, keepCancelled}})
}

// Uncancel forgets it.
func (s Lanes) Uncancel(ctx context.Context, c Claim, peer agora.AgentID, stream string) error {
	k := c.keys()
	return s.asHolder(ctx, call{uncancelScript, []string{k.rec, k.cancelled}, []any{c.Epoch, cancelField(peer, stream)}})
}

func cancelField(peer agora.AgentID, stream string) string {
	return agora.EncodeToken(string(peer)) + "/" + agora.EncodeToken(stream)
}

// laneField names a lane in a session's hash: the kind of its addressee and the name, encoded; of a box also its
// caller.
func laneField(to agora.Address) string {
	switch {
	case to.IsSpace():
		return "s:" + agora.EncodeToken(to.Space)
	case to.IsBox():
		return "c:" + agora.EncodeToken(to.Space) + "." + agora.EncodeToken(string(to.Agent))
	}
	return "a:" + agora.EncodeToken(string(to.Agent))
}

// streamField names a stream of a lane in the same hash.
func streamField(lane, stream string) string { return lane + "/" + agora.EncodeToken(stream) }

// value is the stream as it is stored: indexed or un-indexed, kind, deadline in ms, receipts.
func (o OpenStream) value() string {
	indexed := "u"
	if o.Indexed {
		indexed = "i"
	}
	return indexed + ":" + strconv.Itoa(int(o.Kind)) + ":" + strconv.FormatInt(stored(o.Deadline), 10) + ":" + strconv.Itoa(int(o.Receipts))
}

func parseOpen(stream, value string) OpenStream {
	f := strings.Split(value+":::", ":")
	kind, _ := strconv.ParseUint(f[1], 10, 8)
	deadline, _ := strconv.ParseInt(f[2], 10, 64)
	receipts, _ := strconv.ParseUint(f[3], 10, 8)
	return OpenStream{
		Stream: stream, Kind: agora.Kind(kind), Indexed: f[0] == "i", Deadline: millis(deadline), Receipts: agora.Receipts(receipts),
	}
}

// lanes reads a session's hash of lanes and streams, sorted so that they read alike every time.
func (r reply) lanes(tenant string) []Lane {
	byField := map[string]*Lane{}
	for field, value := range r.pairs {
		lane, token, isStream := strings.Cut(field, "/")
		l := byField[lane]
		if l == nil {
			to, ok := parseLane(tenant, lane)
			if !ok {
				continue
			}
			l = &Lane{To: to}
			byField[lane] = l
		}
		if stream, err := agora.DecodeToken(token); isStream && err == nil {
			l.Open = append(l.Open, parseOpen(stream, value))
		}
	}
	out := make([]Lane, 0, len(byField))
	for _, l := range byField {
		slices.SortFunc(l.Open, func(a, b OpenStream) int { return cmp.Compare(a.Stream, b.Stream) })
		out = append(out, *l)
	}
	slices.SortFunc(out, func(a, b Lane) int { return cmp.Compare(laneField(a.To), laneField(b.To)) })
	return out
}

func parseLane(tenant, field string) (agora.Address, bool) {
	kind, token, _ := strings.Cut(field, ":")
	token, caller, isBox := strings.Cut(token, ".")
	name, err := agora.DecodeToken(token)
	if isBox {
		by, bad := agora.DecodeToken(caller)
		if err != nil || bad != nil || name == "" || kind != "c" {
			return agora.Address{}, false
		}
		return agora.ToBox(tenant, name, agora.AgentID(by)), true
	}
	switch {
	case err != nil || name == "":
		return agora.Address{}, false
	case kind == "s":
		return agora.ToSpace(tenant, name), true
	case kind == "a":
		return agora.ToAgent(tenant, agora.AgentID(name)), true
	}
	return agora.Address{}, false
}
