package iat

import (
	"cmp"
	"context"
	"encoding/json"
	"net/http"
	"strconv"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/iat"
)

// register takes what an agent says of itself.
func (d *Door) register(x *web.Exchange, e *iat.Envelope, as agora.AgentID) error {
	card, err := d.cardOf(x.Context(), x.Actor, e, as)
	if err != nil {
		return err
	}
	until, err := x.Actor.Register(x.Context(), card, 0)
	if err != nil {
		return err
	}
	if e.Type != iat.Request {
		return x.Answer(http.StatusAccepted, nil)
	}
	return x.AnswerBytes(http.StatusOK, media, append(d.registered(e, &card, until), '\n'))
}

// registration is the payload of the answer to a registration.
type registration struct {
	Status  string        `json:"status"`
	Agent   agora.AgentID `json:"agent"`
	Tools   int           `json:"tools"`
	Expires int64         `json:"expires_at,omitempty"` // Unix seconds; left out where it lasts as long as the socket's session
}

// cardOf returns the card of an agent that registers.
func (d *Door) cardOf(ctx context.Context, by *edge.Actor, e *iat.Envelope, as agora.AgentID) (card agora.Agent, err error) {
	r, err := e.Registration()
	if err != nil {
		return card, err
	}
	if r.Agent != "" && r.Agent != as {
		return card, &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "agent is not who registers, %q", as), Path: "/payload/agent", ID: e.ID}
	}
	card = agora.Agent{
		ID: as, Name: cmp.Or(r.Name, string(as)), Dialect: iat.Dialect, Description: r.Description, Domain: r.Domain, Version: r.Version,
		Registration: agora.Registration{Media: iat.MediaRegister, Body: e.Payload},
	}
	for _, t := range r.Tools {
		card.Tools = append(card.Tools, agora.Skill{Name: t.Name, Description: t.Description, Schema: t.Input})
	}
	if len(r.Tools) == 0 {
		return card, nil
	}
	who := by.Principal()
	return card, d.cfg.Tools.Within(ctx, who.Tenant, who.Name, as, func() error {
		if err := d.cfg.Tools.CheckDeclared(card.Tools); err != nil {
			return err
		}
		return d.checkOutputs(e, r.Tools)
	})
}

// checkOutputs returns what is wrong with the schemas of what tools answer.
func (d *Door) checkOutputs(e *iat.Envelope, declared []iat.Tool) error {
	for i, t := range declared {
		if t.Output == nil {
			continue
		}
		if _, err := d.cfg.Tools.Compile(t.Output); err != nil {
			path := "/payload/tools/" + strconv.Itoa(i) + "/output_schema"
			return &iat.Fault{Err: agora.Errorf(agora.InvalidRequest, "%s: %s", path, agora.AsError(err).Message), Path: path, ID: e.ID}
		}
	}
	return nil
}

// registered returns the envelope that answers a registration, which lasts until a time, or with the session where that
// is zero.
func (d *Door) registered(e *iat.Envelope, card *agora.Agent, until time.Time) []byte {
	r := registration{Status: "registered", Agent: card.ID, Tools: len(card.Tools)}
	if !until.IsZero() {
		r.Expires = until.Unix()
	}
	payload, err := json.Marshal(r)
	if err != nil {
		panic(err) // a value that can always be written
	}
	return d.answer(e.ID, card.ID, payload)
}

// manifest is what the cluster says of itself.
type manifest struct {
	Agent     agora.AgentID `json:"agent"`
	Protocol  string        `json:"protocol"`
	Version   string        `json:"version"`
	Endpoints []string      `json:"endpoints"`
	Types     []string      `json:"types"`
	Actions   []string      `json:"actions"`
	Limits    bounds        `json:"limits"`
	Time      int64         `json:"timestamp"` // Unix seconds
}

type bounds struct {
	Envelope int     `json:"envelope_bytes"`
	Wait     float64 `json:"max_wait_seconds"`
	Alive    float64 `json:"keep_alive_seconds"`
}

var (
	endpoints = []string{
		"POST /a2a", "GET /a2a/events", "GET /a2a/ws", "GET /a2a/manifest", "GET /a2a/tools", "GET /a2a/approvals",
		"GET /a2a/approvals/{id}", "POST /a2a/approvals/{id}",
	}
	types   = []string{"request", "response", "notification", "chunk"}
	actions = []string{iat.ActionRegister, iat.ActionExecute, "think", iat.ActionCallTool, "log", "done", iat.ActionApproval, iat.ActionStreamEnd, iat.ActionCancel}
)

// manifest answers with what the cluster speaks; with ?agent= with what an agent has registered, in its own bytes.
func (d *Door) manifest(x *web.Exchange) error {
	q, err := x.Query()
	if err != nil {
		return err
	}
	if id := q.Get("agent"); id != "" {
		return manifestOf(x, id)
	}
	return x.Answer(http.StatusOK, manifest{
		Agent: agora.Cluster, Protocol: "iat", Version: "1.0", Endpoints: endpoints, Types: types, Actions: actions,
		Limits: bounds{d.cfg.Frame, d.cfg.MaxWait.Seconds(), d.cfg.KeepAlive.Seconds()}, Time: d.now().Unix(),
	})
}

// agentManifest is what is known of an agent that has registered in another dialect, or not at all.
type agentManifest struct {
	Agent       agora.AgentID `json:"agent"`
	Name        string        `json:"name,omitempty"`
	Description string        `json:"description,omitempty"`
	Version     string        `json:"version,omitempty"`
	Dialect     string        `json:"dialect"`
	Tools       []tool        `json:"tools"`
	Since       string        `json:"registered_at"` // RFC 3339
}

func manifestOf(x *web.Exchange, name string) error {
	id, err := agora.ParseAgentID(name)
	if err != nil {
		return err
	}
	a, err := x.Actor.Directory().Card(x.Context(), id)
	if err != nil {
		return err
	}
	if a.Registration.Media == iat.MediaRegister {
		return x.AnswerBytes(http.StatusOK, media, a.Registration.Body)
	}
	return x.Answer(http.StatusOK, agentManifest{
		Agent: a.ID, Name: a.Name, Description: a.Description, Version: a.Version, Dialect: a.DialectName(), Tools: toolsOf(&a),
		Since: a.RegisteredAt.UTC().Format(time.RFC3339),
	})
}
