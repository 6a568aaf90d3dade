package presence

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// Link is a link of the cluster to the gateway of another one.
type Link struct {
	Tenant  string
	Address string    // of the gateway
	Since   time.Time // when it was made; of two links that offer one agent the older has it
	Over    time.Time // when it was ended, by the server's clock; zero while it stands
	Holder  Holder    // the edge that holds it; zero where none does
	State   string    // what that has said of it last
}

// LinkKept is how long a link that was ended is remembered as such: for so long nobody who still knows it as one that
// stands brings it back.
const LinkKept = 24 * time.Hour

// linkPrincipal begins the names of links as principals: see yields in the prelude of the scripts.
const linkPrincipal = "cluster.link/"

// Principal returns the name of the principal whose sessions are those of the agents that the link has brought here.
// Such a session makes room for everybody else: for the one who claims or registers the id, it is over at once. Of two
// links the older one's name goes before the other's, and its sessions before the other's. No id is a link's that an
// agent has here, or is to find its mail under when it returns.
func (l *Link) Principal() string {
	return fmt.Sprintf("%s%017d/%s", linkPrincipal, l.Since.UnixMicro(), l.Address)
}

// IsLink reports whether a principal's name is that of a link, as nobody else's may be.
func IsLink(principal string) bool { return strings.HasPrefix(principal, linkPrincipal) }

// field is where the link stands.
func (l *Link) field() string { return member(l.Tenant, agora.AgentID(l.Address)) }

// Links is the links to gateways of other clusters, and which edge holds each.
type Links struct{ *backend }

// List returns all links, those that were ended within LinkKept included. known is what the caller knows of them: what
// the server has lost of that, it has again.
func (s Links) List(ctx context.Context, known []Link) ([]Link, error) {
	args := []any{LinkKept.Milliseconds()}
	for i := range known {
		l := &known[i]
		args = append(args, l.field(), l.Since.UnixMicro(), stored(l.Over))
	}
	r, err := s.run(ctx, call{linksScript, []string{linksKey, heldKey}, args})
	if err != nil {
		return nil, err
	}
	holders := map[string]string{}
	for field, value := range r.at(1).pairs {
		holders[field] = value
	}
	var all []Link
	for field, value := range r.at(0).pairs {
		if l, ok := parseLink(field, value, holders[field]); ok {
			all = append(all, l)
		}
	}
	return all, nil
}

func parseLink(field, value, holder string) (l Link, ok bool) {
	tenant, address, ok := splitMember(field)
	since, over, cut := strings.Cut(value, " ")
	made, err := strconv.ParseInt(since, 10, 64)
	if !ok || !cut || err != nil {
		return l, false
	}
	l = Link{Tenant: tenant, Address: string(address), Since: time.UnixMicro(made), Over: millis(reply{over}.int())}
	if words := strings.SplitN(holder, " ", 4); len(words) == 4 {
		l.Holder, l.State = parseHolder(words[1]+" "+words[2]), words[3]
	}
	return l, true
}

// Make makes a link, unless it stands, and returns it as it stands; made says that this call has made it.
func (s Links) Make(ctx context.Context, tenant, address string, now time.Time) (l Link, made bool, err error) {
	l = Link{Tenant: tenant, Address: address}
	r, err := s.run(ctx, call{linkMakeScript, []string{linksKey}, []any{l.field(), now.UnixMicro()}})
	l.Since = time.UnixMicro(r.at(1).int())
	return l, r.at(0).yes(), err
}

// End ends a link; false where there is none.
func (s Links) End(ctx context.Context, tenant, address string) (bool, error) {
	l := Link{Tenant: tenant, Address: address}
	r, err := s.run(ctx, call{linkEndScript, []string{linksKey}, []any{l.field()}})
	return r.yes(), err
}

// Hold has a life of an edge hold a link for a while, unless another one does, and reports whether it does now. state
// is told to who asks for it. It may be a link that was ended: then it is held to be cleared away.
func (s Links) Hold(ctx context.Context, l Link, h Holder, lasts time.Duration, state string) (bool, error) {
	r, err := s.hold(ctx, l, h, max(lasts, time.Millisecond), state)
	return r.yes(), err
}

// Leave has it hold the link no more.
func (s Links) Leave(ctx context.Context, l Link, h Holder) error {
	_, err := s.hold(ctx, l, h, 0, "")
	return err
}

func (s Links) hold(ctx context.Context, l Link, h Holder, lasts time.Duration, state string) (reply, error) {
	return s.run(ctx, call{linkHoldScript, []string{linksKey, heldKey}, []any{
		l.field(), l.Since.UnixMicro(), agora.EncodeToken(h.Edge), agora.EncodeToken(h.Incarnation), lasts.Milliseconds(), state,
	}})
}
