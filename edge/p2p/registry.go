package p2p

import (
	"context"
	"encoding/json"
	"iter"
	"net/http"
	"net/url"
	"slices"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	ma "github.com/multiformats/go-multiaddr"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/directory"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/presence"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// registry answers over HTTP: it registers peers as agents, and lists them and the edges.
type registry struct {
	*shared
	peers    *known
	relays   *relays
	reserved *reservations
	dialer   *dialer
	derived  *derived
}

// registration is the body of a POST to /register.
type registration struct {
	AgentName    agora.AgentID   `json:"agent_name"`
	PeerID       string          `json:"peer_id"`
	Addrs        []string        `json:"addrs"`
	Skills       json.RawMessage `json:"skills"`       // as of a card
	Capabilities json.RawMessage `json:"capabilities"` // as of a card
	Description  json.RawMessage `json:"description"`  // as of a card
	Version      json.RawMessage `json:"version"`      // as of a card
	TTL          json.RawMessage `json:"ttl"`          // seconds, or a text such as 10m
	Proof        json.RawMessage `json:"proof"`        // that the peer is to speak as the agent: see [wire.Proof]
}

// registered is the answer to one.
type registered struct {
	AgentName agora.AgentID `json:"agent_name"`
	PeerID    string        `json:"peer_id"`
	Expires   string        `json:"expires_at"`    // RFC 3339
	Bound     bool          `json:"bound"`         // the peer speaks as the agent
	Why       string        `json:"why,omitempty"` // it does not
}

// unproven is what is said to who registers a peer without a proof.
const unproven = "the registration has no proof by the peer's key: the agent is listed, and the peer does not speak as it"

// reachTime is how long a peer that has an id has for a sign of life before another one gets the id.
const reachTime = time.Second

func (g *registry) register(x *web.Exchange) error {
	body, err := x.JSON()
	if err != nil {
		return err
	}
	var r registration
	if err := web.Decode(body, &r); err != nil {
		return err
	}
	id, card, lasts, err := g.read(x.Context(), &r, body)
	if err != nil {
		return err
	}
	if err := g.mayBelong(x.Context(), id); err != nil {
		return err
	}
	binding := edge.Binding{Peer: card.Peer, Agent: card.ID, Lasts: lasts}
	if binding.Proven, err = g.prove(x, &r, id); err != nil {
		return err
	}
	if err := x.Actor.MayBindPeer(x.Context(), binding); err != nil {
		return err // before anything is changed
	}
	before, err := g.contest(x, card.ID, id, binding.Proven != 0)
	if err != nil {
		return err
	}
	until, err := x.Actor.Register(x.Context(), card, lasts)
	if err != nil {
		return err
	}
	if before != "" { // which speaks as the agent no more
		if err := x.Actor.UnbindPeer(x.Context(), before.String(), card.ID); err != nil {
			return err
		}
		g.peers.forget(before)
	}
	said := registered{AgentName: card.ID, PeerID: card.Peer, Expires: until.UTC().Format(time.RFC3339)}
	if said.Bound, err = x.Actor.BindPeer(x.Context(), binding); err != nil {
		return err
	}
	if !said.Bound {
		said.Why = unproven
	}
	g.peers.forget(id)
	return x.Answer(http.StatusOK, said)
}

// read returns what a registration says.
func (g *registry) read(ctx context.Context, r *registration, body []byte) (id peer.ID, card agora.Agent, lasts time.Duration, err error) {
	if id, err = peer.Decode(r.PeerID); err != nil {
		return id, card, 0, agora.Errorf(agora.InvalidRequest, "peer_id is no peer id")
	}
	c, err := wire.ReadCard(body, 0)
	if err != nil {
		return id, card, 0, err
	}
	card = c.Agent(r.AgentName)
	card.Name, card.Dialect, card.Peer, card.Registration = string(r.AgentName), wire.Dialect, id.String(), agora.Registration{}
	if card.Addresses, err = g.addresses(ctx, id, r.Addrs); err != nil {
		return id, card, 0, err
	}
	lasts, err = ttl(r.TTL)
	return id, card, lasts, err
}

// ttl returns how long a registration is to last; 0 where it does not say.
func ttl(said json.RawMessage) (time.Duration, error) {
	var seconds float64
	var text string
	switch {
	case said == nil || string(said) == "null":
		return 0, nil
	case json.Unmarshal(said, &seconds) == nil && 0 < seconds && seconds < 1e9:
		return time.Duration(seconds * float64(time.Second)), nil
	case json.Unmarshal(said, &text) == nil:
		if lasts, err := time.ParseDuration(text); err == nil && lasts > 0 {
			return lasts, nil
		}
	}
	return 0, agora.Errorf(agora.InvalidRequest, "ttl must be seconds, or a duration such as 10m")
}

// addresses returns the addresses of a peer as whole ones, those that need no relay first. FORBIDDEN where one may not
// be dialled.
func (g *registry) addresses(ctx context.Context, id peer.ID, said []string) ([]string, error) {
	var direct, relayed []string
	for _, text := range said {
		a, err := ma.NewMultiaddr(text)
		if err != nil {
			return nil, agora.Errorf(agora.InvalidRequest, "%.100q is no multiaddress", text)
		}
		_, err = a.ValueForProtocol(ma.P_CIRCUIT)
		through := err == nil
		at, whose := peer.SplitAddr(a)
		switch {
		case whose == "":
			a = a.Encapsulate(ma.StringCast("/p2p/" + id.String()))
		case whose != id:
			return nil, agora.Errorf(agora.InvalidRequest, "address %.100q is another peer's", text)
		}
		if through {
			at, _ = ma.SplitFunc(at, func(c ma.Component) bool { return c.Protocol().Code == ma.P_CIRCUIT })
			at, whose = peer.SplitAddr(at)
		}
		if at != nil { // one of a relay that says where that is, or of the peer itself
			if err := g.dialer.checkDial(ctx, whose, at); err != nil && agora.AsError(err).Code == agora.Forbidden {
				return nil, err
			}
		}
		if through {
			relayed = append(relayed, a.String())
		} else {
			direct = append(direct, a.String())
		}
	}
	return append(direct, relayed...), nil
}

// contest returns the peer that has had an id so far, where that is another one; AGENT_EXISTS where it gives a sign of
// life. To one that is proven, one that was only claimed gives way.
func (g *registry) contest(x *web.Exchange, as agora.AgentID, id peer.ID, proven bool) (before peer.ID, err error) {
	has, err := x.Actor.Directory().Own(x.Context(), as)
	if e := agora.AsError(err); e != nil {
		if e.Code == agora.AgentNotFound {
			return "", nil
		}
		return "", err
	}
	other, err := peer.Decode(has.Peer)
	if err != nil || other == id {
		return "", nil
	}
	if proven {
		known, err := g.peers.find(x.Context(), other)
		if err != nil {
			return "", err
		}
		if b := known.Agent(); b == nil || b.Agent != as || b.Tenant != x.Actor.Principal().Tenant {
			return other, nil
		}
	}
	if g.lives(x.Context(), other, has.Addresses) {
		return "", agora.Errorf(agora.AgentExists, "agent %q is peer %s, which lives", as, other)
	}
	return other, nil
}

// lives reports whether a peer has a place or a connection here, or answers within a second.
func (g *registry) lives(ctx context.Context, p peer.ID, addresses []string) bool {
	if g.reserved.has(p) || g.host.Network().Connectedness(p) == network.Connected {
		return true
	}
	ctx, cancel := context.WithTimeout(ctx, reachTime)
	defer cancel()
	s, err := g.dialer.streamTo(ctx, p, addresses, wire.CardProtocol)
	if err != nil {
		return false
	}
	defer s.Reset()
	_ = s.SetReadDeadline(time.Now().Add(reachTime)) // what is over fails to be read
	if err := s.CloseWrite(); err != nil {
		return false
	}
	_, err = s.Read(make([]byte, 1))
	return err == nil || !timedOut(err)
}

// peerEntry is an agent as GET /peers has it.
type peerEntry struct {
	AgentName      agora.AgentID `json:"agent_name"`
	PeerID         string        `json:"peer_id"`
	Addresses      []string      `json:"addresses"`
	Multiaddresses []string      `json:"multiaddresses"` // the same
	Capabilities   []string      `json:"capabilities"`
	Skills         []string      `json:"skills"`
	Dialect        string        `json:"dialect"`
}

const mostListed = 1000 // peers in one answer

func (g *registry) listPeers(x *web.Exchange) error {
	q, err := x.Query("agent_name", "skill", "after")
	if err != nil {
		return err
	}
	found, err := g.agents(x, q)
	if err != nil {
		return err
	}
	page, last, err := web.Page(g.listed(x, found), mostListed, func(e *peerEntry) ([]byte, error) { return json.Marshal(e) })
	if err != nil {
		return err
	}
	if last != nil {
		x.Header().Set(nextHeader, url.PathEscape(string(last.AgentName)))
	}
	return x.Answer(http.StatusOK, page)
}

// nextHeader is the header of an answer that says what to ask for as after, where there are more: the answer itself is
// a list.
const nextHeader = "Agora-Next"

// listed returns those of agents that are peers.
func (g *registry) listed(x *web.Exchange, agents iter.Seq[agora.Agent]) iter.Seq[peerEntry] {
	edges := g.open(x.Context())
	return func(yield func(peerEntry) bool) {
		for a := range agents {
			if e, is := g.entry(x.Actor.Principal().Tenant, &a, edges); is && !yield(e) {
				return
			}
		}
	}
}

// agents returns those that fit.
func (g *registry) agents(x *web.Exchange, q url.Values) (iter.Seq[agora.Agent], error) {
	name, skill := q.Get("agent_name"), q.Get("skill")
	if name == "" {
		return x.Actor.Directory().Select(x.Context(), directory.Filter{Skill: skill, After: agora.AgentID(q.Get("after"))})
	}
	a, err := x.Actor.Directory().Card(x.Context(), agora.AgentID(name))
	if e := agora.AsError(err); e != nil && e.Code == agora.AgentNotFound {
		return slices.Values[[]agora.Agent](nil), nil
	}
	if err != nil || skill != "" && !slices.ContainsFunc(slices.Concat(a.Skills, a.Tools), func(s agora.Skill) bool { return s.Name == skill }) {
		return slices.Values[[]agora.Agent](nil), err
	}
	return slices.Values([]agora.Agent{a}), nil
}

// entry returns an agent as a peer; false where it is none.
func (g *registry) entry(tenant string, a *agora.Agent, edges []presence.Relay) (peerEntry, bool) {
	e := peerEntry{AgentName: a.ID, PeerID: a.Peer, Addresses: slices.Clone(a.Addresses), Capabilities: a.Capabilities, Dialect: a.DialectName()}
	if e.PeerID == "" {
		id, is := g.derived.idOf(agora.ToAgent(tenant, a.ID))
		if !is {
			return e, false
		}
		e.PeerID = id.String()
	}
	for _, edge := range edges {
		for _, at := range edge.Addresses {
			if circuit := at + "/p2p-circuit/p2p/" + e.PeerID; !slices.Contains(e.Addresses, circuit) && len(e.Addresses) < mostAddresses {
				e.Addresses = append(e.Addresses, circuit)
			}
		}
	}
	e.Addresses = nonNil(e.Addresses)
	e.Multiaddresses, e.Capabilities, e.Skills = e.Addresses, nonNil(e.Capabilities), []string{}
	for _, s := range slices.Concat(a.Skills, a.Tools) {
		if !slices.Contains(e.Skills, s.Name) {
			e.Skills = append(e.Skills, s.Name)
		}
	}
	return e, true
}

// mostAddresses is how many addresses of a peer are listed.
const mostAddresses = 16

func nonNil(all []string) []string {
	if all == nil {
		return []string{}
	}
	return all
}
