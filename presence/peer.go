package presence

import (
	"context"
	"encoding/json"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

const relaysKey = root + "{relays}" // edges by where they are reached as relays

// peerKey returns the key of what is known of a peer.
func peerKey(peer string) string { return root + "{p:" + agora.EncodeToken(peer) + "}" }

// Relay is an edge as libp2p reaches it.
type Relay struct {
	Holder    Holder   `json:"-"`
	Peer      string   `json:"peer"`      // its peer id
	Addresses []string `json:"addresses"` // whole ones, that end with the peer id
	Draining  bool     `json:"draining,omitempty"`
}

// Peers is the peers of libp2p: at which edges they have reserved a place, which agents they are, and at which
// addresses edges are reached as relays. All of it is kept for a while only: who has put it puts it again meanwhile, so
// that a server that has lost it has it back.
type Peers struct{ *backend }

// PutRelay tells where an edge is reached as a relay, for as long as lasts.
func (s Peers) PutRelay(ctx context.Context, r Relay, lasts time.Duration) error {
	b, err := json.Marshal(r)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, call{keptPutScript, []string{relaysKey}, []any{lasts.Milliseconds(), r.Holder.word(), b}})
	return err
}

// DropRelay takes back what PutRelay told.
func (s Peers) DropRelay(ctx context.Context, h Holder) error {
	return unavailable(s.rdb.HDel(ctx, relaysKey, h.word()).Err())
}

// Relays returns the edges that are relays, in no order: also those that are gone, for as long as they said that it
// lasts.
func (s Peers) Relays(ctx context.Context) ([]Relay, error) {
	r, err := s.run(ctx, call{keptListScript, []string{relaysKey}, nil})
	if err != nil {
		return nil, err
	}
	var all []Relay
	for word, value := range r.pairs {
		one := Relay{Holder: parseHolder(word)}
		if json.Unmarshal([]byte(value), &one) == nil { // else it is of another version
			all = append(all, one)
		}
	}
	return all, nil
}

// What stands of a peer: beside boundField, reservedField and an edge for each at which it has reserved a place.
const (
	boundField    = "bound"
	reservedField = "at "
)

// Bound is the agent that a peer speaks as. One that is neither proven nor claimed was bound by an edge of an earlier
// version, which asked for no proof.
type Bound struct {
	Tenant  string        `json:"tenant"`
	Agent   agora.AgentID `json:"agent"`
	By      []byte        `json:"by"`                // who has bound it, as who binds writes it down
	Proven  int64         `json:"proven,omitempty"`  // when the peer has said so by its key, in milliseconds since 1970
	Claimed bool          `json:"claimed,omitempty"` // the peer has not said so: it counts where nobody is asked who they are
}

// Peer is what is known of a peer.
type Peer struct {
	Bound *Bound   // nil where nobody has bound it
	At    []Holder // the edges at which it has reserved a place, in no order
}

// Agent returns the agent that a peer speaks as where everybody is asked who they are; nil for none, and where that was
// only claimed.
func (p *Peer) Agent() *Bound {
	if p.Bound == nil || p.Bound.Claimed {
		return nil
	}
	return p.Bound
}

// PutReservations tells which peers have reserved a place at an edge, for as long as lasts. The calls go in pipelines;
// where one fails, some may have been done.
func (s Peers) PutReservations(ctx context.Context, h Holder, peers []string, lasts time.Duration) error {
	calls := make([]call, len(peers))
	for i, p := range peers {
		calls[i] = call{keptPutScript, []string{peerKey(p)}, []any{lasts.Milliseconds(), reservedField + h.word(), ""}}
	}
	_, err := s.runAll(ctx, calls)
	return err
}

// DropReservations takes back what PutReservations told.
func (s Peers) DropReservations(ctx context.Context, h Holder, peers []string) error {
	p := s.rdb.Pipeline()
	for _, peer := range peers {
		p.HDel(ctx, peerKey(peer), reservedField+h.word())
	}
	_, err := p.Exec(ctx)
	return unavailable(err)
}

// Bind has a peer speak as an agent, for as long as lasts.
func (s Peers) Bind(ctx context.Context, peer string, b Bound, lasts time.Duration) error {
	v, err := json.Marshal(b)
	if err != nil {
		return err
	}
	_, err = s.run(ctx, call{keptPutScript, []string{peerKey(peer)}, []any{lasts.Milliseconds(), boundField, v}})
	return err
}

// Unbind takes back what Bind did.
func (s Peers) Unbind(ctx context.Context, peer string) error {
	return unavailable(s.rdb.HDel(ctx, peerKey(peer), boundField).Err())
}

// Find returns what is known of a peer; the zero Peer for nothing.
func (s Peers) Find(ctx context.Context, peer string) (Peer, error) {
	r, err := s.run(ctx, call{keptListScript, []string{peerKey(peer)}, nil})
	if err != nil {
		return Peer{}, err
	}
	var found Peer
	for field, value := range r.pairs {
		if word, is := strings.CutPrefix(field, reservedField); is {
			found.At = append(found.At, parseHolder(word))
			continue
		}
		var b Bound
		if field == boundField && json.Unmarshal([]byte(value), &b) == nil {
			found.Bound = &b
		}
	}
	return found, nil
}
