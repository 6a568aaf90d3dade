package aip

import (
	"context"
	"errors"
	"net"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/pause"
	"github.com/agora-relay/agora/presence"
	"github.com/agora-relay/agora/wire/aip"
)

// An address is one node's, whichever tenant it is of and however it is written: what it reaches is compared when the
// node registers, every minute while it is held, and with each connection that any edge makes to it. And who is there
// is asked, as far as it knows the question.

// prove returns FORBIDDEN where the node of a channel, which is connected, says that it is another one. secret is that
// of its registration; nil where it was made before.
func (r *registry) prove(ctx context.Context, ch *channel, secret *string) error {
	ctx, cancel := context.WithTimeout(ctx, min(proveTime, r.cfg.DialTimeout))
	defer cancel()
	return aip.Identify(ctx, ch, ch.at.node, secret)
}

// proveTime is how long a node may take to say who it is. One that does not is taken for one that does not know the
// question: so is who registers from the one thread that would answer.
const proveTime = time.Second

// names returns the names of what a channel's address reaches, its connection included.
func (ch *channel) names(ctx context.Context) ([]string, error) {
	ch.all.mu.Lock()
	reached := ch.reached
	ch.all.mu.Unlock()
	return ch.all.dialer.Names(ctx, ch.at.address, reached)
}

// claims has the channel connect to what may be another node's, until the function that it returns is called: whoever
// registers has that decided as it claims the address.
func (ch *channel) claims() (end func()) {
	ch.all.mu.Lock()
	defer ch.all.mu.Unlock()
	ch.claiming++
	return func() {
		ch.all.mu.Lock()
		defer ch.all.mu.Unlock()
		ch.claiming--
	}
}

// mayReach notes what a connection of a channel has reached, and returns FORBIDDEN where that is another
// node's.
func (ch *channel) mayReach(ctx context.Context, at net.Addr) error {
	ch.all.mu.Lock()
	ch.reached = at
	claiming := ch.claiming > 0
	ch.all.mu.Unlock()
	if claiming || ch.at.node == "" {
		return nil
	}
	names := ch.all.dialer.NamesOf(at)
	err := ch.all.addresses.Reaches(ctx, ch.at.tenant, agora.AgentID(ch.at.node), ch.at.address, names)
	if _, taken := errors.AsType[*presence.AddressError](err); taken {
		return agora.Errorf(agora.Forbidden, "what answers at %s is another node", ch.at.address)
	}
	return nil // also while presence can't tell: calls between nodes need it as little
}

// renewEvery is how often it is looked at what the address of a node reaches.
const renewEvery = time.Minute

// keepAddresses looks at what the addresses of nodes reach, each in its time, and ends the sessions of those whose
// address has become another node's, until the door is closed.
func (r *registry) keepAddresses() {
	for pause.For(r.ctx, time.Second) {
		for _, n := range r.held.list() {
			if r.ctx.Err() != nil || !n.renews(time.Now()) {
				continue
			}
			if err := r.renewAddress(n); err != nil && r.ctx.Err() == nil {
				r.cfg.Log.Debug("what the address of a node reaches is looked at again in a minute", "agent", n.at.Agent, "err", err)
			}
		}
	}
}

// renews reports whether it is time to look at what the address of a node reaches, and notes that this is done.
func (n *node) renews(now time.Time) bool {
	n.registry.held.mu.Lock()
	defer n.registry.held.mu.Unlock()
	if now.Sub(n.renewed) < renewEvery {
		return false
	}
	n.renewed = now
	return true
}

func (r *registry) renewAddress(n *node) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.cfg.DialTimeout)
	defer cancel()
	names, err := n.channel.names(ctx)
	if err != nil {
		return err
	}
	err = r.channels.addresses.Renew(ctx, n.at.Tenant, n.at.Agent, n.channel.at.address, names)
	if taken, is := errors.AsType[*presence.AddressError](err); !is || taken.Pending {
		return err
	}
	r.cfg.Log.Warn("session ended whose address is another agent's", "agent", n.at.Agent, "tenant", n.at.Tenant, "address", n.channel.at.address)
	_, err = r.node.EndDialled(ctx, n.at.Tenant, n.at.Agent, false)
	return err
}
