package party

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// WebSocket is the door for Agora relay and Agora spaces, spoken to by bare frames that are numbered.
func WebSocket() Door {
	return Door{Name: "ws", Dialect: agora.OwnDialect, Can: Everything, TooMuch: 1 << 20, Enter: enterWS} // bytes: limits.frame
}

// wsParty is an agent at a WebSocket.
type wsParty struct {
	*Ear
	seat    Seat
	numbers numbers
	asked   int // names of what is asked beside words
	pumps   sync.WaitGroup

	mu      sync.Mutex // guards the fields below
	conn    *agoratest.Client
	token   string
	last    uint64            // position in the mailbox that was heard
	spaces  map[string]uint64 // the same for spaces
	over    map[wsStream]bool // streams of which nothing is answered any more
	pending *wsAsked          // what was said last and is not answered yet; nil for nothing
}

type wsStream struct{ peer, stream string }

// wsAsked is something that an answer is waited for.
type wsAsked struct {
	n      uint64 // number of a word, which goes to a place and is of a stream
	place  string
	stream wsStream
	part   agora.Part
	id     string // of what is asked beside words
	answer chan wsAnswer
}

type wsAnswer struct {
	frame agoratest.Frame
	err   error
	used  bool // the number is used up
}

func enterWS(ctx context.Context, seat Seat) (Party, error) {
	p := &wsParty{Ear: NewEar(), seat: seat, numbers: numbers{}, spaces: map[string]uint64{}, over: map[wsStream]bool{}}
	seat.T.Cleanup(p.pumps.Wait) // behind the connections' own
	return p, p.connect("")
}

// connect registers with the edge, by a frame with more fields.
func (p *wsParty) connect(more string) error {
	c, resp, err := agoratest.TryConnect(p.seat.T, agoratest.Direct{}, p.seat.Cluster.URL(p.seat.Edge), url.Values{"token": {p.seat.Token}}.Encode(), nil)
	if err != nil {
		return refusedUpgrade(resp, err)
	}
	skills, err := json.Marshal(skillNames(p.seat.Skills))
	if err != nil {
		return err
	}
	if err := c.Try(fmt.Sprintf(`{"type":"agent.register","agent":{"id":%s,"skills":%s}%s}`, agoratest.Quote(string(p.seat.ID)), skills, more)); err != nil {
		return ErrGone
	}
	f, ok := c.Next(await.Long)
	if !ok || f.Type() != "agent.registered" {
		c.Drop()
		return frameError(f)
	}
	p.mu.Lock()
	if f.Raw("resumed") != "true" {
		p.numbers = numbers{}
	}
	p.conn, p.token, p.last = c, f.Raw("resume_token"), f.Uint("last_seq")
	p.mu.Unlock()
	p.Open()
	p.pumps.Go(func() { p.pump(c) })
	return nil
}

// refusedUpgrade is the error of a handshake, whose answer begins with its code.
func refusedUpgrade(resp *http.Response, err error) error {
	if resp == nil || resp.Body == nil {
		return fmt.Errorf("%w: %w", ErrGone, err)
	}
	defer resp.Body.Close()
	b, _ := io.ReadAll(resp.Body) // what can't be read is no code
	code, text, _ := strings.Cut(string(b), ": ")
	return agora.Errorf(agora.Code(code), "%s", text)
}

func skillNames(skills []agora.Skill) []string {
	names := []string{}
	for _, s := range skills {
		names = append(names, s.Name)
	}
	return names
}

// frameError is an error frame as an error; an empty one is that of a connection that is gone.
func frameError(f agoratest.Frame) error {
	if f == "" {
		return ErrGone
	}
	return agora.Errorf(agora.Code(f.Text("code")), "%s", f.Text("message"))
}

// Say is that of a [Party].
func (p *wsParty) Say(ctx context.Context, w Word) error {
	p.mu.Lock()
	n, st := p.numbers.next(w.place()), wsStream{string(w.Peer), w.Stream}
	ask := &wsAsked{n: n, place: w.place(), stream: st, part: w.Part}
	dropped := p.over[st] && (w.Part == agora.Chunk || w.Part == agora.End)
	switch w.Part {
	case agora.Start, agora.End:
		delete(p.over, st)
	case agora.Cancel:
		p.over[st] = true
	}
	p.mu.Unlock()
	a := p.send(ctx, wsFrame(w, n), ask, !dropped)
	if a.used || dropped && a.err == nil {
		p.numbers.use(w.place(), n)
	}
	return a.err
}

// send sends a frame, and waits for its answer where it has one.
func (p *wsParty) send(ctx context.Context, frame string, ask *wsAsked, wait bool) wsAnswer {
	ask.answer = make(chan wsAnswer, 1)
	p.mu.Lock()
	c := p.conn
	if wait {
		p.pending = ask
	}
	p.mu.Unlock()
	if c.Try(frame) != nil || c.Gone() != nil {
		return wsAnswer{err: ErrGone}
	}
	if !wait {
		return wsAnswer{}
	}
	select {
	case a := <-ask.answer:
		return a
	case <-ctx.Done():
		return wsAnswer{err: ctx.Err()}
	}
}

// ask asks the edge for something beside words.
func (p *wsParty) ask(ctx context.Context, fields string) (agoratest.Frame, error) {
	p.asked++
	id := fmt.Sprintf("ask-%d", p.asked)
	a := p.send(ctx, fmt.Sprintf(`{"id":%q,%s}`, id, fields), &wsAsked{id: id}, true)
	return a.frame, a.err
}

// Join is that of a [Party].
func (p *wsParty) Join(ctx context.Context, space string) error {
	_, err := p.ask(ctx, `"type":"space.join","space":`+agoratest.Quote(space))
	return err
}

// Look is that of a [Party].
func (p *wsParty) Look(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	f, err := p.ask(ctx, `"type":"agents.find","to":`+agoratest.Quote(string(id)))
	var found []struct {
		ID, Dialect, Status string
		Skills, Tools       []agora.Skill
	}
	if err == nil {
		err = json.Unmarshal([]byte(f.Raw("agents")), &found)
	}
	if err != nil || len(found) != 1 {
		return agora.Agent{}, err
	}
	return agora.Agent{ID: agora.AgentID(found[0].ID), Dialect: found[0].Dialect, Status: agora.AgentStatus(found[0].Status), Skills: found[0].Skills, Tools: found[0].Tools}, nil
}

// Leave is that of a [Party]. What was heard is acknowledged: who enters under the id next does not hear it again.
func (p *wsParty) Leave() {
	p.mu.Lock()
	ack := fmt.Sprintf(`{"type":"ack","seq":%d}`, p.last)
	p.mu.Unlock()
	_ = p.conn.Try(ack) // a connection that is gone needs no goodbye
	p.conn.Close(1000)
	p.pumps.Wait()
}

// Drop is that of a [Party].
func (p *wsParty) Drop() {
	p.conn.Drop()
	p.pumps.Wait()
}

// Return is that of a [Party].
func (p *wsParty) Return(ctx context.Context, k int) error {
	p.Drop()
	p.seat.Edge = k
	at, err := json.Marshal(p.spaces)
	if err != nil {
		return err
	}
	more := fmt.Sprintf(`,"resume_token":%s,"last_seq":%d,"spaces":%s`, p.token, p.last, at)
	return untilBound(ctx, func() error { return p.connect(more) })
}

// Stall is that of a [Party].
func (p *wsParty) Stall(on bool) {
	if on {
		p.conn.Pause()
	} else {
		p.conn.Resume()
	}
}
