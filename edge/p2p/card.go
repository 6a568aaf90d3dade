package p2p

import (
	"context"
	"time"

	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/internal/p2phost"
	wire "github.com/agora-relay/agora/wire/p2p"
)

// server answers the streams on which peers ask for cards and hand requests off: to the edge itself, or to an agent
// whose peer the edge is.
type server struct {
	*shared
	peers   *known
	conns   *conns
	derived *derived
}

// asker is a peer that asks, as the agent that it speaks as.
type asker struct {
	actor *edge.Actor
	as    agora.AgentID
}

// question is a stream on which a peer asks.
type question struct {
	network.MuxedStream
	over *conn         // the peer's connection, or the one over which its circuit comes
	from peer.ID       // who asks
	of   agora.Address // the agent that is asked, zero for the cluster
}

// asked is a question to the edge itself.
func asked(s network.Stream) *question {
	return &question{MuxedStream: s, over: counted(s.Conn()), from: s.Conn().RemotePeer()}
}

// asks returns who a peer asks as. Errors are those of speaker, and AGENT_NOT_FOUND for an agent of another tenant than
// the peer's. Nothing of the stream is read.
func (v *server) asks(ctx context.Context, q *question) (*asker, error) {
	from, of := q.from, q.of
	a, as, err := v.peers.speaker(ctx, from)
	v.conns.heard(ctx, q.over, from, a, err)
	if err != nil {
		return nil, err
	}
	if of.Agent != "" && of.Tenant != a.Principal().Tenant {
		return nil, agora.UnknownAgent(of.Agent)
	}
	return &asker{a, as}, nil
}

// call is a call of an agent in the asker's name.
func (a *asker) call(to agora.AgentID) carrier.Call {
	return carrier.Call{Actor: a.actor, As: a.as, To: agora.Agent{ID: to}}
}

// cardTime is how long an agent may take to show its card.
const cardTime = 5 * time.Second

// serveCard answers a stream with a card: of an agent, or of the cluster. What the peer says is not read.
func (v *server) serveCard(q *question) {
	ctx, cancel := context.WithTimeout(v.ctx, cardTime)
	defer cancel()
	b, err := v.card(ctx, q)
	if err != nil {
		p2phost.Refuse(q, wire.AppendFault(nil, err), writeTime)
		return
	}
	finish(q, b)
}

func (v *server) card(ctx context.Context, q *question) ([]byte, error) {
	who, err := v.asks(ctx, q)
	if err == nil {
		err = who.actor.SpendBeside(who.as)
	}
	if err != nil {
		return nil, err
	}
	if q.of.Agent == "" {
		return v.clusterCard(ctx, who.actor)
	}
	a, card, err := v.cfg.Carriers.Card(ctx, who.call(q.of.Agent))
	switch {
	case err != nil:
		return nil, err
	case card.Media == wire.MediaCard && card.Body != nil && a.DialectName() == wire.Dialect:
		return card.Body, nil
	}
	b := wire.AppendCard(nil, &a)
	if len(b) > wire.MaxCard { // nobody would read it
		return nil, agora.Errorf(agora.MessageTooLarge, "the card is larger than %d bytes", wire.MaxCard)
	}
	return b, nil
}

// clusterCard is the card of the cluster: with its agents where the actor may see them.
func (v *server) clusterCard(ctx context.Context, a *edge.Actor) ([]byte, error) {
	c := wire.ClusterCard{Name: v.node.Config().Broker.Cluster(), Version: v.cfg.Version}
	all, err := a.Directory().Counted().All(ctx)
	if e := agora.AsError(err); e != nil && e.Code != agora.Forbidden {
		return nil, err
	}
	c.Agents, c.Able = len(all), all
	return c.Append(nil), nil
}

func finish(s network.MuxedStream, b []byte) { p2phost.Finish(s, b, writeTime) }

// writeTime is how long a peer may take to make room for a piece of an answer.
const writeTime = 30 * time.Second
