package edge

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base32"
	"strconv"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/policy"
	"github.com/agora-relay/agora/spaces"
)

// What a session has to say to others is admitted here, whatever its verb and its door, before it goes into a lane.

// admit is what must hold before a message is stored, by whatever verb and door it comes, once the session is usable:
// the right, the depth, the rate, the screens. member says that the agent is in the space that an event is for.
func (o *outgoing) admit(ctx context.Context, m *agora.Message, member bool) error {
	if err := o.mayTell(ctx, m, member); err != nil {
		return err
	}
	if err := checkDepth(m, o.node.cfg.Depth); err != nil {
		return err
	}
	if err := o.spend(ctx, m); err != nil {
		return err
	}
	return o.node.screens.check(ctx, o.actor, m)
}

// mayTell tells whether the agent may say a message to its addressee.
func (o *outgoing) mayTell(ctx context.Context, m *agora.Message, member bool) error {
	if m.To.IsSpace() {
		return o.mayPublish(ctx, m, member)
	}
	return o.mayAddress(ctx, m)
}

// dispatchMessage admits a message of the relay's verbs, and puts it into its lane, or mails it.
func (o *outgoing) dispatchMessage(ctx context.Context, c *Command, m *agora.Message) error {
	if m.Part == agora.Whole {
		m.Stream = "" // has said what it answers
	}
	if err := o.admit(ctx, m, false); err != nil {
		return err
	}
	if c.anywhere && m.Kind == agora.Reply && m.Part == agora.Whole && !m.To.IsBox() {
		return o.mail(ctx, c, *m)
	}
	if m.Kind == agora.Control { // a request is given up: its deadline counts no more
		o.sender().Replied(m.To, m.AbortBody().Request)
	}
	if m.ID != "" {
		m.ID = Key(m.ID, append([]byte{byte(m.Kind), byte(m.Part)}, m.Media...), []byte(m.Stream), m.Body)
	}
	return o.put(ctx, *m, c)
}

// dispatchEvent admits an event, or a part of one, and puts it into its lane. A whole one that is larger than a delta
// may be goes in parts.
func (o *outgoing) dispatchEvent(ctx context.Context, c *Command, m *agora.Message, member bool) error {
	if err := o.admit(ctx, m, member); err != nil {
		return err
	}
	if len(c.pieces) > 1 {
		m.Stream = o.eventID(c.Space, m.ID, c.N)
		return o.putCut(ctx, *m, c)
	}
	err := o.put(ctx, *m, c)
	if err == nil && c.Verb == OpenEvent {
		o.tell(c, Notice{Kind: NoticePublished, RequestID: c.ID, To: m.To, Stream: m.Stream})
	}
	return err
}

// mayPublish reports whether the agent may publish into a space: members do, and into system spaces only who has that
// right. What goes on with an event was looked at when that began, and by review since.
func (o *outgoing) mayPublish(ctx context.Context, m *agora.Message, member bool) error {
	space, g := m.To.Space, o.review().by
	if m.Part <= agora.Start {
		if err := o.actor.mayEnter(policy.Publish, space); err != nil {
			return err
		}
	}
	typ, err := spaces.Type(space)
	if err != nil {
		return err
	}
	if !member {
		if err := o.node.hub.Exists(ctx, o.claim.Tenant, space); err != nil {
			return err
		}
		return agora.Errorf(agora.Forbidden, "only members publish into space %q", space)
	}
	if typ == spaces.System && !g.Ruled() && !o.actor.Principal().System {
		return agora.Errorf(agora.Forbidden, "space %q is the system's", space)
	}
	return nil
}

// event makes the message of an event, or of a part of one, as members are to get it.
func (o *outgoing) event(c *Command) (m agora.Message, err error) {
	to := agora.ToSpace(o.claim.Tenant, c.Space)
	m = agora.Message{Kind: agora.Event, Part: c.Part, From: o.claim.Agent, To: to, N: c.N, Body: c.Data}
	switch {
	case c.Verb == Publish:
		m.ID, m.Meta.Trace, m.Part = EventKey(c.ID, c.N, c.Data), c.Trace, agora.Whole
		if c.pieces, err = o.node.hub.Publication(c.Data, o.claim.Agent); err == nil {
			m.Body = c.pieces[0]
		}
		return m, err
	case c.Verb == OpenEvent:
		m.ID, m.Meta.Trace, m.Part = EventKey(c.ID, c.N, c.Data), c.Trace, agora.Start
		m.Stream = o.eventID(c.Space, m.ID, c.N)
		m.Body, err = o.node.hub.Opening(c.Data, o.claim.Agent)
		return m, err
	case c.Part == agora.Chunk:
		m.Body, err = o.node.hub.Delta(c.Data, o.claim.Agent)
	}
	m.Stream = o.aliases.of(c.Event)
	if c.Told != nil { // it may be asked for again
		m.ID = Key(c.ID, []byte{byte(m.Part)}, []byte(m.Stream), m.Body)
	}
	return m, err
}

// eventID makes the id of an event. Made of the session and of what was said,
// it is the same when the client says it again at another edge.
func (o *outgoing) eventID(space, key string, n uint64) string {
	if key == "" && n == 0 {
		return "evt_" + rand.Text()
	}
	sum := sha256.Sum256([]byte(o.claim.Session + "\x00" + space + "\x00" + strconv.FormatUint(n, 10) + "\x00" + key))
	return "evt_" + base32.StdEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16])
}

// mail stores a whole answer like that of an agent without a session: should the session end before that is told, it is
// the same when it is said again, wherever that is.
func (o *outgoing) mail(ctx context.Context, c *Command, m agora.Message) error {
	as := o.actor.actingAs(o.claim.Agent)
	as.key(c, &m)
	out, err := as.mail(ctx, m)
	if err == nil {
		c.Told(Notice{Kind: NoticeReceipt, Tier: agora.Stored, Seq: out.Seq, To: m.To})
	}
	return err
}
