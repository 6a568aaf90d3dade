package party

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/agora-relay/agora"
)

// iatPoster is a party that POSTs, and has a downlink of events.
type iatPoster struct {
	*iatParty
	life context.Context // ends with the scenario
	stop func()          // ends the downlink; nil before there is one

	gate    sync.Mutex // held while nothing is taken from the downlink
	stalled bool
}

func enterIAT(ctx context.Context, seat Seat) (Party, error) {
	p := &iatPoster{iatParty: newIATParty(seat)}
	life, end := context.WithCancel(context.Background())
	p.life = life
	seat.T.Cleanup(func() {
		p.Stall(false)
		end()
		p.work.Wait()
		p.http.CloseIdleConnections()
	})
	if err := p.registers(ctx); err != nil {
		return nil, err
	}
	return p, p.listen(ctx)
}

// registers declares what the party can do, where it can do something.
func (p *iatParty) registers(ctx context.Context) error {
	if len(p.seat.Skills) == 0 {
		return nil
	}
	e, err := p.registration()
	if err == nil {
		_, err = p.post(ctx, e, false)
	}
	return err
}

// registration is the envelope that declares them.
func (p *iatParty) registration() (e iatEnvelope, err error) {
	var tools []map[string]any
	for _, s := range p.seat.Skills {
		tools = append(tools, map[string]any{"name": s.Name})
	}
	body, err := json.Marshal(map[string]any{"action": "register", "agent": p.seat.ID, "tools": tools})
	e.Header.Type, e.Header.ID, e.Header.From, e.Payload = "request", "register", p.seat.ID, body
	return e, err
}

// post POSTs an envelope; the error of a refusal is its own.
func (p *iatParty) post(ctx context.Context, e iatEnvelope, events bool) (*http.Response, error) {
	b, err := json.Marshal(e)
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, p.seat.Cluster.HTTP(p.seat.Edge)+"/a2a", bytes.NewReader(spliced(b, e.Payload)))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.seat.Token)
	r.Header.Set("Content-Type", "application/json")
	if events {
		r.Header.Set("Accept", "text/event-stream")
	}
	return answered(p.http.Do(r))
}

// spliced puts the payload's own bytes into an envelope, which json.Marshal would compact.
func spliced(envelope, payload []byte) []byte {
	if payload == nil {
		return envelope
	}
	head, _, _ := bytes.Cut(envelope, []byte(`,"payload":`))
	return append(append(append(bytes.Clone(head), `,"payload":`...), payload...), '}')
}

// answered reads a refusal as an error; a connection that broke is gone.
func answered(resp *http.Response, err error) (*http.Response, error) {
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if resp.StatusCode < 300 {
		return resp, nil
	}
	defer resp.Body.Close()
	var fault struct {
		Payload struct {
			Error struct {
				Code    agora.Code
				Message string
			}
		}
	}
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", ErrGone, err)
	}
	if err := json.Unmarshal(b, &fault); err != nil {
		return nil, fmt.Errorf("%d %s: %w", resp.StatusCode, b, err)
	}
	return nil, agora.Errorf(fault.Payload.Error.Code, "%s", fault.Payload.Error.Message)
}

// Say is that of a [Party]. The answer to a request is heard as it comes.
func (p *iatPoster) Say(ctx context.Context, w Word) error {
	w.As = "" // who may be several is the one that it names
	p.note(w)
	e := p.envelope(w)
	asks := e.Header.Type == "request" && !e.Metadata.Stream
	if asks {
		ctx = p.life
	}
	resp, err := p.post(ctx, e, asks)
	if !errors.Is(err, ErrGone) && (err == nil || agora.AsError(err).Code != agora.Unavailable) {
		p.said()
	}
	if err != nil {
		return err
	}
	if !asks {
		return resp.Body.Close()
	}
	p.work.Go(func() {
		defer resp.Body.Close()
		p.events(resp.Body, func(_ string, data []byte) {
			if h, ok := p.word(data); ok {
				if h.Peer == agora.Cluster {
					h.Peer = w.Peer
				}
				p.Put(h)
			}
		})
	})
	return nil
}

// events reads events until they end, and has each be taken.
func (p *iatParty) events(r io.Reader, take func(id string, data []byte)) {
	lines := bufio.NewReaderSize(r, 64<<10)
	var id, name string
	var data []string
	for {
		line, err := lines.ReadString('\n')
		if err != nil {
			return
		}
		field, value, _ := strings.Cut(strings.TrimSuffix(line, "\n"), ": ")
		switch field {
		case "id":
			id = value
		case "event":
			name = value
		case "data":
			data = append(data, value)
		case "":
			if len(data) > 0 && name == "" {
				take(id, []byte(strings.Join(data, "\n")))
			}
			id, name, data = "", "", nil
		}
	}
}

// listen opens the downlink.
func (p *iatPoster) listen(ctx context.Context) error {
	life, stop := context.WithCancel(p.life)
	p.mu.Lock()
	last, token := p.last, p.token
	p.mu.Unlock()
	q := url.Values{"agent": {string(p.seat.ID)}}
	if token != "" {
		q.Set("resume_token", token)
	}
	r, err := http.NewRequestWithContext(life, http.MethodGet, p.seat.Cluster.HTTP(p.seat.Edge)+"/a2a/events?"+q.Encode(), nil)
	if err != nil {
		stop()
		return err
	}
	r.Header.Set("Authorization", "Bearer "+p.seat.Token)
	if last != "" {
		r.Header.Set("Last-Event-ID", last)
	}
	defer context.AfterFunc(ctx, stop)()
	resp, err := answered(p.http.Do(r))
	if err != nil {
		stop()
		return err
	}
	p.mu.Lock()
	p.token = resp.Header.Get("Agora-Resume-Token")
	if last == "" {
		p.last = resp.Header.Get("Agora-Last-Seq")
	}
	p.mu.Unlock()
	p.Open()
	ended := make(chan struct{})
	p.stop = func() {
		stop()
		<-ended
	}
	p.work.Go(func() {
		defer close(ended)
		defer resp.Body.Close()
		defer p.Shut()
		p.events(resp.Body, p.heard)
	})
	return nil
}

// heard takes what came by the downlink, unless nothing is to be taken.
func (p *iatPoster) heard(id string, data []byte) {
	p.seat.within(len(data))
	p.gate.Lock()
	defer p.gate.Unlock()
	if w, ok := p.word(data); ok {
		p.Put(w)
	}
	if id != "" {
		p.mu.Lock()
		p.last = id
		p.mu.Unlock()
	}
}

// Drop is that of a [Party].
func (p *iatPoster) Drop() {
	if p.stop != nil {
		p.stop()
	}
}

// Return is that of a [Party].
func (p *iatPoster) Return(ctx context.Context, k int) error {
	p.Drop()
	p.seat.Edge = k
	return untilBound(ctx, func() error { return p.listen(ctx) })
}

// Stall is that of a [Party].
func (p *iatPoster) Stall(on bool) {
	switch {
	case on == p.stalled:
	case on:
		p.gate.Lock()
	default:
		p.gate.Unlock()
	}
	p.stalled = on
}
