package party

import (
	"context"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/aip"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/servers"
	wire "github.com/agora-relay/agora/wire/aip"
)

// AIP is the AIP door, spoken to by bare gRPC: each party is a node that edges dial, and calls others by its edge. What
// it says is part of a call that stands at both ends, and is lost with either: nothing is acknowledged, and a refusal
// is the status of the call.
func AIP() Door {
	return Door{
		Name: "aip", Dialect: wire.Dialect, TooMuch: aipMost, Open: openAIP, Enter: enterAIP,
		Can: Enters | Sends | Asks | Answers | Pours | Pieces | Streams | Cancels | Deadlines | Waits | Stalls | Anything | Bounded | Lists | Retracts,
	}
}

const (
	aipMost   = 2 << 20        // aip.max-message
	aipWindow = 64 << 10       // of a stream, in bytes: so little is taken unseen from who writes to one that stalls
	aipPath   = "/aip-listens" // where an edge tells at which address it serves
)

// aipOpened is the door at one edge.
type aipOpened struct {
	*aip.Door
	serving sync.WaitGroup
}

func openAIP(e agoratest.Entry) (agoratest.Opened, error) {
	l, err := e.Listen()
	if err != nil {
		return nil, err
	}
	e.Mux.HandleFunc(aipPath, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, l.Addr().String()) // who asked is gone, else
	})
	o := &aipOpened{Door: aip.New(e.Node, aip.Config{
		Carriers: carrier.New(nil), MaxMessage: aipMost, HeartbeatTimeout: time.Hour, StopWait: time.Hour,
	})}
	o.serving.Go(func() { _ = o.Serve(l) }) // who comes then is refused
	return o, nil
}

// Wait returns when nothing of the door runs.
func (o *aipOpened) Wait() {
	o.Door.Wait()
	o.serving.Wait()
}

// aipParty is an agent of the AIP dialect: a node, and a caller of others.
type aipParty struct {
	wire.UnimplementedAgentServiceServer
	*Ear
	Unable
	seat Seat
	life context.Context // ends with the scenario
	work sync.WaitGroup  // what hears

	conn    *grpc.ClientConn // to its edge
	gateway wire.GatewayServiceClient
	stop    func() // ends the node's server, and all that it serves

	gate    sync.Mutex // held while it takes nothing from its connections
	stalled bool

	mu     sync.Mutex            // guards the fields below
	calls  map[string]*aipCall   // its own sessions, by what they are called here
	served map[string]*aipServed // those with it, by the names that were heard
	named  int                   // sessions that it has opened or heard
}

func enterAIP(ctx context.Context, seat Seat) (Party, error) {
	p := &aipParty{Ear: NewEar(), seat: seat, calls: map[string]*aipCall{}, served: map[string]*aipServed{}}
	life, end := context.WithCancel(context.Background())
	p.life = life
	seat.T.Cleanup(func() {
		p.Stall(false)
		end()
		p.shut()
		p.work.Wait()
	})
	return p, untilServed(func() error { return p.connect(ctx) })
}

// untilServed tries to register until the edge does not find itself, or the machine, too busy.
func untilServed(try func() error) (err error) {
	await.Within(await.Long, func() bool {
		err = try()
		return err == nil || agora.AsError(err).Code != agora.Unavailable
	})
	return err
}

// connect has the party's edge register a node that serves from now on.
func (p *aipParty) connect(ctx context.Context) error {
	at, err := p.edge(ctx)
	if err != nil {
		return err
	}
	o := []grpc.DialOption{grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithStaticStreamWindowSize(aipWindow)}
	if p.seat.Token != "" {
		o = append(o, grpc.WithPerRPCCredentials(aipBearer(p.seat.Token)))
	}
	if p.conn, err = grpc.NewClient("passthrough:///"+at, o...); err != nil {
		return err
	}
	p.gateway = wire.NewGatewayServiceClient(p.conn)
	address, err := p.serve()
	if err != nil {
		p.shut()
		return err
	}
	card := &wire.AgentInfo{AgentId: string(p.seat.ID), Address: address, Name: string(p.seat.ID)}
	for _, s := range p.seat.Skills {
		card.Skills = append(card.Skills, &wire.AgentInfo_AgentSkill{SkillId: s.Name})
	}
	p.Open()
	if _, err := p.gateway.RegisterAgent(ctx, card); err != nil {
		p.shut()
		return aipError(err)
	}
	return nil
}

// edge returns the address at which the party's edge serves.
func (p *aipParty) edge(ctx context.Context) (string, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.seat.Cluster.HTTP(p.seat.Edge)+aipPath, nil)
	if err != nil {
		return "", err
	}
	resp, err := (&http.Transport{DisableKeepAlives: true}).RoundTrip(r)
	if err != nil {
		return "", err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return string(b), err
}

// serve begins to serve at a port of its own, until stop.
func (p *aipParty) serve() (address string, err error) {
	if address, err = servers.Addr(); err != nil { // which no node of another scenario has had, whose session may not be over yet
		return "", err
	}
	l, err := net.Listen("tcp", address)
	if err != nil {
		return "", err
	}
	s := grpc.NewServer(grpc.WaitForHandlers(true), grpc.StaticStreamWindowSize(aipWindow))
	wire.RegisterAgentServiceServer(s, p)
	var serving sync.WaitGroup
	serving.Go(func() { _ = s.Serve(l) }) // ends with stop
	p.stop = func() {
		s.Stop()
		serving.Wait()
	}
	return address, nil
}

// shut ends the party's connections, and with them all that it has opened and serves.
func (p *aipParty) shut() {
	if p.stop != nil {
		p.stop()
		p.stop = nil
	}
	if p.conn != nil {
		p.conn.Close() // nothing is under way that is waited for
		p.conn = nil
	}
	p.Shut()
}

// Leave is that of a [Party].
func (p *aipParty) Leave() {
	_, _ = p.gateway.DeregisterNode(p.life, &wire.DeregisterNodeRequest{NodeId: string(p.seat.ID)}) // an edge that is gone needs no goodbye
	p.shut()
}

// Drop is that of a [Party]. It returns when the cluster knows: what is put to a node that is about to go is lost.
func (p *aipParty) Drop() {
	p.shut()
	tenant, _, _ := strings.Cut(p.seat.Token, "~")
	store := p.seat.Cluster.Node(p.seat.Cluster.Edges()[0]).Config().Presence
	await.Within(await.Long, func() bool {
		found, err := store.Addressees.Lookup(p.life, tenant, p.seat.ID)
		return err == nil && found.Holder.Edge == ""
	})
}

// Return is that of a [Party].
func (p *aipParty) Return(ctx context.Context, k int) error {
	p.seat.Edge = k
	return untilBound(ctx, func() error { return p.connect(ctx) })
}

// Stall is that of a [Party].
func (p *aipParty) Stall(on bool) {
	switch {
	case on == p.stalled:
	case on:
		p.gate.Lock()
	default:
		p.gate.Unlock()
	}
	p.stalled = on
}

// passes returns when the party takes what comes.
func (p *aipParty) passes() {
	p.gate.Lock()
	defer p.gate.Unlock()
}

// Look is that of a [Party].
func (p *aipParty) Look(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	all, err := p.gateway.GetNodes(ctx, &wire.GetNodesRequest{AgentId: string(p.seat.ID)})
	if err != nil {
		return agora.Agent{}, aipError(err)
	}
	for _, peer := range all.GetPeers() {
		if a := peer.GetAgentInfo(); a.GetAgentId() == string(id) {
			found := agora.Agent{ID: id}
			for _, s := range a.GetSkills() {
				found.Skills = append(found.Skills, agora.Skill{Name: s.GetSkillId()})
			}
			return found, nil
		}
	}
	return agora.Agent{}, agora.UnknownAgent(id)
}

// aipBearer presents a token.
type aipBearer string

// GetRequestMetadata implements credentials.PerRPCCredentials.
func (b aipBearer) GetRequestMetadata(context.Context, ...string) (map[string]string, error) {
	return map[string]string{"authorization": "Bearer " + string(b)}, nil
}

// RequireTransportSecurity implements credentials.PerRPCCredentials.
func (aipBearer) RequireTransportSecurity() bool { return false }
