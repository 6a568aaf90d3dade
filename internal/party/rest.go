package party

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/carrier"
	"github.com/agora-relay/agora/edge/rest"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/internal/agoratest"
)

// REST is the door for plain HTTP: its parties have no session, and do nothing but ask.
func REST() Door {
	return Door{
		Name: "rest", Can: Asks | Deadlines | Bounded | Looks | Heads | Lists | Mails, TooMuch: 1 << 20, // bytes: of a body
		Open: func(e agoratest.Entry) (agoratest.Opened, error) {
			k := web.New(e.Node, web.Config{})
			rest.Mount(k, e.Mux, carrier.New(nil))
			return k, nil
		},
		Enter: enterREST,
	}
}

// restParty asks by POST, and hears events.
type restParty struct {
	*Ear
	Unable
	seat Seat
	http *http.Client
	life context.Context
	work sync.WaitGroup
}

func enterREST(_ context.Context, seat Seat) (Party, error) {
	p := &restParty{Ear: NewEar(), seat: seat, http: &http.Client{Transport: &http.Transport{}}}
	life, end := context.WithCancel(context.Background())
	p.life = life
	seat.T.Cleanup(func() {
		end()
		p.work.Wait()
		p.http.CloseIdleConnections()
	})
	return p, nil
}

// do makes a request; the error of a refusal is its own.
func (p *restParty) do(ctx context.Context, method, path string, body []byte) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, method, p.seat.Cluster.HTTP(p.seat.Edge)+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Authorization", "Bearer "+p.seat.Token)
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	resp, err := p.http.Do(r)
	if err != nil || resp.StatusCode == http.StatusOK {
		return resp, err
	}
	defer resp.Body.Close()
	var fault web.Fault
	if err := json.NewDecoder(resp.Body).Decode(&fault); err != nil {
		return nil, err
	}
	return nil, agora.Errorf(fault.Error.Code, "%s", fault.Error.Message)
}

// maxLine is the longest line of events.
const maxLine = 4 << 20

// Say is that of a [Party]: the answer is heard as it comes.
func (p *restParty) Say(_ context.Context, w Word) error {
	q := url.Values{"as": {string(p.seat.ID)}}
	if w.Deadline > 0 {
		q.Set("deadline_ms", strconv.FormatInt(w.Deadline.Milliseconds(), 10))
	}
	resp, err := p.do(p.life, http.MethodPost, "/agents/"+url.PathEscape(string(w.Peer))+"/ask?"+q.Encode(), named(w.Body, w.Request))
	if err != nil {
		return err
	}
	p.work.Go(func() {
		defer resp.Body.Close()
		name := ""
		lines := bufio.NewScanner(resp.Body)
		lines.Buffer(nil, maxLine)
		for lines.Scan() {
			field, value, _ := strings.Cut(lines.Text(), ": ")
			switch field {
			case "event":
				name = value
			case "data":
				p.Put(restWord(w, name, value))
			}
		}
	})
	return nil
}

// restWord says an event of the answer to a request in words of the suite.
func restWord(asked Word, name, data string) Word {
	w := Word{Kind: agora.Reply, Peer: asked.Peer, Request: asked.Request}
	if name != "reply" {
		w.Stream = asked.Request
	}
	switch name {
	case "reply", "start":
		w.Body = []byte(data)
		if name == "start" {
			w.Part = agora.Start
		}
	case "chunk":
		var text string
		_ = json.Unmarshal([]byte(data), &text) // what is no text is seen to be missing
		w.Part, w.Body = agora.Chunk, []byte(text)
	case "end":
		w.Part = agora.End
	default:
		var fault web.Fault
		_ = json.Unmarshal([]byte(data), &fault) // else the code is seen to be missing
		w.Part, w.Code = agora.Abort, fault.Error.Code
	}
	return w
}

// Look is that of a [Party].
func (p *restParty) Look(ctx context.Context, id agora.AgentID) (agora.Agent, error) {
	resp, err := p.do(ctx, http.MethodGet, "/agents/"+url.PathEscape(string(id)), nil)
	if err != nil {
		return agora.Agent{}, err
	}
	defer resp.Body.Close()
	var found struct {
		ID, Dialect, Status string
		Skills, Tools       []agora.Skill
	}
	err = json.NewDecoder(resp.Body).Decode(&found)
	return agora.Agent{ID: agora.AgentID(found.ID), Dialect: found.Dialect, Status: agora.AgentStatus(found.Status), Skills: found.Skills, Tools: found.Tools}, err
}
