package party

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// iatSocket is a party at a WebSocket, which has a receipt of all that it says.
type iatSocket struct {
	*iatParty

	conn    *agoratest.Client // guarded by mu, as the next one
	pending *iatSaid          // what was said last and is not answered yet; nil for nothing
}

// iatSaid is an envelope that an answer is waited for.
type iatSaid struct {
	id, parent string
	answer     chan error
}

func enterIATSocket(ctx context.Context, seat Seat) (Party, error) {
	p := &iatSocket{iatParty: newIATParty(seat)}
	seat.T.Cleanup(func() {
		p.work.Wait() // behind the connections' own
		p.http.CloseIdleConnections()
	})
	if err := p.connect(); err != nil {
		return nil, err
	}
	e, err := p.registration()
	if err != nil || len(seat.Skills) == 0 {
		return p, err
	}
	return p, p.tell(ctx, e, "")
}

func (p *iatSocket) connect() error {
	p.mu.Lock()
	q := url.Values{"agent": {string(p.seat.ID)}, "token": {p.seat.Token}, "receipts": {"stored"}}
	if p.last != "" {
		q.Set("last_seq", p.last)
		q.Set("resume_token", p.token)
	}
	p.mu.Unlock()
	at := strings.TrimSuffix(p.seat.Cluster.URL(p.seat.Edge), "/ws") + "/a2a/ws"
	c, resp, err := agoratest.TryConnect(p.seat.T, agoratest.Direct{}, at, q.Encode(), nil)
	if err != nil {
		if resp != nil && resp.Body != nil {
			_, err = answered(resp, nil)
		} else {
			err = ErrGone
		}
		return err
	}
	p.mu.Lock()
	p.conn, p.token = c, resp.Header.Get("Agora-Resume-Token")
	if p.last == "" {
		p.last = resp.Header.Get("Agora-Last-Seq")
	}
	p.mu.Unlock()
	if p.token == "" { // it learns why on the socket
		f, _ := c.Next(await.Long)
		c.Drop()
		return refusedBy([]byte(f))
	}
	p.Open()
	p.work.Go(func() { p.pump(c) })
	return nil
}

// refusedBy returns the error that an envelope tells.
func refusedBy(b []byte) error {
	var e struct {
		Payload struct {
			Error struct {
				Code    agora.Code
				Message string
			}
		}
	}
	if json.Unmarshal(b, &e) != nil || e.Payload.Error.Code == "" {
		return ErrGone
	}
	return agora.Errorf(e.Payload.Error.Code, "%s", e.Payload.Error.Message)
}

// pump hears what comes until the socket is gone.
func (p *iatSocket) pump(c *agoratest.Client) {
	for {
		f, ok := c.Next(await.Long)
		switch {
		case ok:
			p.came([]byte(f))
		case c.Gone() != nil:
			p.answers(nil, ErrGone)
			p.Shut()
			return
		}
	}
}

// answers answers what was said last, if that is the one.
func (p *iatSocket) answers(id *string, err error) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.pending == nil || id != nil && p.pending.id != *id {
		return false
	}
	p.pending.answer <- err
	p.pending = nil
	return true
}

func (p *iatSocket) came(b []byte) {
	p.seat.within(len(b))
	var e iatEnvelope
	var said struct {
		Action, Status string
		Error          *struct{ Code agora.Code }
	}
	_ = json.Unmarshal(b, &e) // what is no envelope is seen to be missing
	_ = json.Unmarshal(e.Payload, &said)
	if e.Seq > 0 {
		p.mu.Lock()
		p.last = strconv.FormatUint(e.Seq, 10)
		p.mu.Unlock()
	}
	switch of := e.Header.Parent; {
	case e.Header.From != agora.Cluster:
	case said.Action == "receipt" || said.Status == "registered":
		p.answers(&of, nil)
		return
	case said.Error != nil && (p.answers(&of, refusedBy(b)) || of == "" && p.answers(nil, refusedBy(b))):
		return
	}
	if w, ok := p.word(b); ok {
		if w.Part >= agora.Cancel {
			p.silenced(e.Header.Parent)
		}
		p.Put(w)
	}
}

// silenced notes that a stream is over: what was said of it last is not answered.
func (p *iatSocket) silenced(parent string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if ask := p.pending; ask != nil && ask.parent == parent {
		ask.answer <- nil
		p.pending = nil
	}
}

// Say is that of a [Party].
func (p *iatSocket) Say(ctx context.Context, w Word) error {
	p.note(w)
	e, parent := p.envelope(w), ""
	if w.Part == agora.Chunk || w.Part == agora.End {
		parent = e.Header.Parent
	}
	return p.tell(ctx, e, parent)
}

// tell says an envelope, and waits for its answer: there is none where its parent is over.
func (p *iatSocket) tell(ctx context.Context, e iatEnvelope, parent string) error {
	b, err := json.Marshal(e)
	if err != nil {
		return err
	}
	ask := &iatSaid{e.Header.ID, parent, make(chan error, 1)}
	p.mu.Lock()
	c, dropped := p.conn, ask.parent != "" && p.over[ask.parent]
	if !dropped {
		p.pending = ask
	}
	p.mu.Unlock()
	if c.Try(string(spliced(b, e.Payload))) != nil || c.Gone() != nil {
		return ErrGone
	}
	if dropped {
		p.said()
		return nil
	}
	select {
	case err = <-ask.answer:
	case <-ctx.Done():
		err = ctx.Err()
	}
	if err == nil || agora.AsError(err).Code != agora.Unavailable {
		p.said()
	}
	return err
}

// Leave is that of a [Party]. What was heard is acknowledged: who enters under the id next does not hear it again.
func (p *iatSocket) Leave() {
	p.mu.Lock()
	ack := fmt.Sprintf(`{"header":{"msg_id":"bye","type":"notification","to":"agora"},"payload":{"action":"ack","seq":%s}}`, p.last)
	p.mu.Unlock()
	_ = p.conn.Try(ack) // a connection that is gone needs no goodbye
	p.conn.Close(1000)
	p.work.Wait()
}

// Drop is that of a [Party].
func (p *iatSocket) Drop() {
	p.conn.Drop()
	p.work.Wait()
}

// Return is that of a [Party].
func (p *iatSocket) Return(ctx context.Context, k int) error {
	p.Drop()
	p.seat.Edge = k
	return untilBound(ctx, p.connect)
}

// Stall is that of a [Party].
func (p *iatSocket) Stall(on bool) {
	if on {
		p.conn.Pause()
	} else {
		p.conn.Resume()
	}
}
