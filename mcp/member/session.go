package member

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/agora-relay/agora/internal/pause"
)

// legacy is the newest protocol of the generation that begins with a handshake. A server that does not understand the
// first message of the newer one may end, or say nothing.
const legacy = "2025-11-25"

// errEnded is why a session can't be used any more; errSlowStart why it was never there.
var (
	errEnded     = errors.New("the tool server has ended")
	errSlowStart = errors.New("the tool server does not answer")
)

// session is a connection to a server that runs.
type session struct {
	*mcp.ClientSession
	life     context.Context // ends when the server can't be used any more, with why
	end      context.CancelCauseFunc
	changed  chan struct{} // holds a token while the list of tools is to be read again
	stale    chan struct{} // holds a token while the server does not tell changes any more
	progress progress
	calls    sync.WaitGroup // in hand; added to under the lock of the server

	process *process        // nil over HTTP, as the next
	conn    *conn           //
	link    *http.Transport // nil over stdio
	version string          // of the protocol that it was asked for; empty for the newest
	watch   sync.WaitGroup
	begun   time.Time
	fails   int  // what went wrong since the server was steady; the watcher's own, as the next
	waited  bool // before it was replaced
}

// open starts the server, or connects to it, and returns once it has answered. ctx bounds that alone. Where the server
// does not understand the newest protocol, it is asked in the legacy one, by a start of its own.
func (m *Member) open(ctx context.Context, version string) (*session, error) {
	s, err := m.attempt(ctx, version, version == "")
	if err == nil || version != "" || ctx.Err() != nil || errors.Is(err, errNoStart) {
		return s, err
	}
	m.cfg.Log.Debug("the tool server may not speak the newest protocol", "err", err)
	s, err = m.attempt(ctx, legacy, false)
	if err == nil {
		m.version = legacy
	}
	return s, err
}

// errNoStart is the error of a command that can't be started.
var errNoStart = errors.New("the command can't be started")

// attempt is open for one version of the protocol. half has it leave half of the time to another attempt.
func (m *Member) attempt(ctx context.Context, version string, half bool) (*session, error) {
	limit := m.cfg.StartTimeout
	if half {
		limit /= 2
	}
	ctx, cancel := context.WithTimeoutCause(ctx, limit, errSlowStart)
	defer cancel()
	s := &session{changed: make(chan struct{}, 1), stale: make(chan struct{}, 1), version: version, begun: time.Now()}
	s.life, s.end = context.WithCancelCause(context.WithoutCancel(ctx))
	transport, err := m.transport(s)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errNoStart, err)
	}
	giveUp := context.AfterFunc(ctx, s.abort)
	s.ClientSession, err = m.mcpClient(s).Connect(ctx, transport, &mcp.ClientSessionOptions{ProtocolVersion: version})
	if !giveUp() && err == nil {
		err = context.Cause(ctx)
	}
	if err != nil {
		err = s.failure(ctx, err)
		s.close(m.cfg.Grace)
		return nil, err
	}
	s.watch.Go(func() {
		_ = s.Wait()
		s.end(errEnded)
	})
	return s, nil
}

// failure is why a server could not be reached, as far as it is known.
func (s *session) failure(ctx context.Context, err error) error {
	if s.process != nil {
		s.process.endsIn(afterwards) // which is likely why, and says more
		if how := s.process.ended(); how != "" {
			return fmt.Errorf("%w: %s", errEnded, how)
		}
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// transport starts the server's process, or makes what reaches it over HTTP.
func (m *Member) transport(s *session) (mcp.Transport, error) {
	if m.cfg.URL != "" {
		s.link = http.DefaultTransport.(*http.Transport).Clone()
		h := &httpLink{base: s.link, life: s.life, gone: func() { s.end(errEnded) }, deaf: func() { signal(s.stale) }}
		return h.transport(m.cfg.URL), nil
	}
	p, err := startProcess(m.cfg.Command, m.cfg.Env, m.cfg.Log)
	if err != nil {
		return nil, err
	}
	s.process, s.conn = p, newConn(p.stdout, p.stdin, m.cfg.Log)
	return s.conn, nil
}

// mcpClient returns the client of a session. It offers a server nothing that this could ask for.
func (m *Member) mcpClient(s *session) *mcp.Client {
	return mcp.NewClient(&mcp.Implementation{Name: "agora", Version: m.cfg.Version}, &mcp.ClientOptions{
		Capabilities:                &mcp.ClientCapabilities{},
		ToolListChangedHandler:      func(context.Context, *mcp.ToolListChangedRequest) { signal(s.changed) },
		ProgressNotificationHandler: func(_ context.Context, r *mcp.ProgressNotificationClientRequest) { s.progress.tell(r.Params) },
	})
}

// abort ends the session without a word, so that nothing of it blocks.
func (s *session) abort() {
	s.end(errSlowStart)
	if s.conn != nil {
		s.conn.Close()
	}
}

// close ends the session in order, and the server where it is a process. Anyone who calls has seen to it that no call
// is in hand. It returns when nothing of it runs.
func (s *session) close(grace time.Duration) {
	if s.ClientSession != nil {
		_ = s.Close()
	}
	s.end(errEnded)
	if s.conn != nil {
		s.conn.Close()
		s.conn.wait()
	}
	if s.process != nil {
		s.process.stop(grace)
	}
	if s.link != nil {
		s.link.CloseIdleConnections()
	}
	s.watch.Wait()
}

// ended returns why the session can't be used any more; nil while it can.
func (s *session) ended() error {
	if s.life.Err() == nil {
		return nil
	}
	return context.Cause(s.life)
}

// how says how a session's server has ended, in words.
func (s *session) how() string {
	if s.process != nil {
		s.process.endsIn(afterwards)
		return cmp.Or(s.process.ended(), "its pipe has ended")
	}
	return "it can't be reached"
}

// signal leaves a token in a channel that holds one.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// listTools returns the tools of the server, page by page, at most one more than a card may have.
func (s *session) listTools(ctx context.Context, most int) (all []*mcp.Tool, err error) {
	if r := s.InitializeResult(); r == nil || r.Capabilities == nil || r.Capabilities.Tools == nil {
		return nil, nil
	}
	p := &mcp.ListToolsParams{}
	for range maxPages {
		page, err := s.ListTools(ctx, p)
		if err != nil {
			return nil, err
		}
		all = append(all, page.Tools...)
		if page.NextCursor == "" || len(all) > most {
			break
		}
		p.Cursor = page.NextCursor
	}
	return all[:min(len(all), most+1)], nil
}

// settle lets changes of the list that follow each other be read once.
func (s *session) settle() bool { return pause.For(s.life, settleTime) }

const settleTime = 50 * time.Millisecond
