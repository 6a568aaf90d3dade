package party

import (
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
	"github.com/agora-relay/agora/internal/faultnet"
	"github.com/agora-relay/agora/sidecar"
)

// Sidecar is no door, but is played as one: parties are HTTP servers behind a sidecar each. What they say they POST to
// its API, or answer to what it has posted to them.
func Sidecar() Door {
	return Door{
		Name: "sidecar", Dialect: agora.OwnDialect, TooMuch: 1 << 20, Enter: enterSidecar, // bytes: of a body
		Can: Enters | Sends | Asks | Answers | Pours | Waits | Moves | Exact | Anything | Bounded | Rooms | Mails,
	}
}

// sidecarParty is a server, its sidecar, and the lines from that to edges.
type sidecarParty struct {
	*Ear
	Unable
	seat   Seat
	server *httptest.Server
	api    string // address of the sidecar's API
	http   *http.Client
	lines  map[int]*faultnet.Proxy // to edges, by their numbers
	end    context.CancelFunc
	over   chan struct{} // closed when the sidecar has ended
	err    error         // why; read behind over

	mu   sync.Mutex // guards the field below
	open map[sidecarAsk]*sidecarAnswer
}

// sidecarAsk names a request that is answered.
type sidecarAsk struct {
	from agora.AgentID
	name string
}

// sidecarAnswer is the answer to a request, which waits for its pieces.
type sidecarAnswer struct {
	pieces chan sidecarPiece // closed at its end
	gone   <-chan struct{}   // closed when nobody waits for it
}

// sidecarPiece is a piece of an answer, or a whole one.
type sidecarPiece struct {
	body    []byte
	whole   bool
	written chan struct{} // closed when it is
}

func enterSidecar(ctx context.Context, seat Seat) (Party, error) {
	p := &sidecarParty{
		Ear: NewEar(), seat: seat, http: &http.Client{Transport: &http.Transport{}}, lines: map[int]*faultnet.Proxy{}, over: make(chan struct{}), open: map[sidecarAsk]*sidecarAnswer{},
	}
	var urls []string
	for _, k := range []int{seat.Edge, 0, 1, 2} { // from one of which it enters, and to which it may return
		if p.lines[k] != nil {
			continue
		}
		u, err := url.Parse(seat.Cluster.URL(k))
		if err != nil {
			return nil, err
		}
		p.lines[k] = faultnet.NewProxy(seat.T, u.Host)
		u.Host = p.lines[k].Addr()
		urls = append(urls, u.String())
	}
	p.reaches(seat.Edge)
	mux := http.NewServeMux()
	mux.HandleFunc("GET /card", p.serveCard)
	mux.HandleFunc("POST /in", p.serveIn)
	p.server = httptest.NewServer(mux)
	if err := p.run(urls); err != nil {
		p.server.Close()
		return nil, err
	}
	seat.T.Cleanup(p.stop)
	return p, p.entered(ctx)
}

// run starts the sidecar.
func (p *sidecarParty) run(urls []string) error {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	p.api = "http://" + l.Addr().String()
	side, err := sidecar.New(sidecar.Config{
		Agent: p.server.URL, Deliver: "/in", Admin: l, Peer: sidecar.Peer{Listen: "none"},
		Client: client.Config{
			URLs: urls, Agent: string(p.seat.ID), Token: p.seat.Token, Patience: time.Hour, Stall: time.Hour, Backoff: client.Backoff{Min: 10 * time.Millisecond, Max: 50 * time.Millisecond},
		},
		Limits: sidecar.Limits{Retry: 10 * time.Millisecond, Deliver: time.Hour, FirstByte: time.Hour, Idle: time.Hour, Grace: time.Millisecond},
	})
	if err != nil {
		l.Close()
		return err
	}
	life, end := context.WithCancel(context.Background())
	p.end = end
	go func() { // stop waits for it
		defer close(p.over)
		p.err = side.Run(life)
	}()
	return nil
}

// stop ends the sidecar and the server, and returns when both have ended.
func (p *sidecarParty) stop() {
	p.end()
	<-p.over
	p.server.Close()
	p.http.CloseIdleConnections()
}

// entered waits until the sidecar is a member, or has ended: an error of type *agora.Error then.
func (p *sidecarParty) entered(ctx context.Context) error {
	if p.isReady(ctx, true) {
		return nil
	}
	select {
	case <-p.over:
		return agora.AsError(p.err)
	default:
		return ErrGone
	}
}

// isReady waits until the sidecar says that it is ready, or is not; false where it has ended before.
func (p *sidecarParty) isReady(ctx context.Context, want bool) (is bool) {
	await.Within(await.Long, func() bool {
		select {
		case <-p.over:
			return true
		default:
		}
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, p.api+"/readyz", nil)
		if err != nil {
			return true
		}
		resp, err := p.http.Do(r)
		if err != nil {
			return ctx.Err() != nil
		}
		resp.Body.Close()
		is = (resp.StatusCode == http.StatusOK) == want
		return is
	})
	return is
}

// reaches has the lines to all edges but one be cut; a number that is of none cuts them all.
func (p *sidecarParty) reaches(edge int) {
	for k, line := range p.lines {
		if k != edge {
			line.Cut()
		}
	}
	if line := p.lines[edge]; line != nil {
		line.Mend()
	}
}

// Leave is that of a [Party].
func (p *sidecarParty) Leave() { p.stop() }

// Drop is that of a [Party].
func (p *sidecarParty) Drop() {
	p.reaches(-1)
	p.isReady(context.Background(), false)
}

// Return is that of a [Party].
func (p *sidecarParty) Return(ctx context.Context, edge int) error {
	p.reaches(edge)
	return p.entered(ctx)
}

// Join is that of a [Party].
func (p *sidecarParty) Join(ctx context.Context, space string) error {
	return p.post(ctx, "/spaces/"+url.PathEscape(space)+"/join", nil)
}

// post asks the sidecar's API; the error of a refusal is its own.
func (p *sidecarParty) post(ctx context.Context, path string, body []byte) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.api+path, strings.NewReader(string(body)))
	if err != nil {
		return err
	}
	resp, err := p.http.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode < 300 {
		return nil
	}
	var fault struct {
		Error struct {
			Code    agora.Code
			Message string
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&fault); err != nil {
		return err
	}
	return agora.Errorf(fault.Error.Code, "%s", fault.Error.Message)
}

// Say is that of a [Party]. A request is a message that names itself: its reply is posted as any other.
func (p *sidecarParty) Say(ctx context.Context, w Word) error {
	switch {
	case w.Kind == agora.Event:
		return p.post(ctx, "/spaces/"+url.PathEscape(w.Space)+"/publish", w.Body)
	case w.Kind == agora.Reply:
		return p.answers(ctx, w)
	}
	body := append([]byte(`{"to":`), agoratest.Quote(string(w.Peer))...)
	if w.Body != nil {
		body = append(append(body, `,"payload":`...), named(w.Body, w.Request)...)
	}
	return p.post(ctx, "/send", append(body, '}'))
}
