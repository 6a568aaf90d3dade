package rest

import (
	"bytes"
	"cmp"
	"encoding/json"
	"net/http"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge/web"
	"github.com/agora-relay/agora/wire/listing"
)

// cardBody is the body of a PUT to /agents/{id}: what an agent says of itself, as in agent.register.
type cardBody struct {
	Name         string          `json:"name"`
	Endpoint     string          `json:"endpoint"`
	Type         string          `json:"type"`
	Version      string          `json:"version"`
	Domain       string          `json:"domain"`
	Description  string          `json:"description"`
	Capabilities []string        `json:"capabilities"`
	Skills       []skill         `json:"skills"`
	Tools        []skill         `json:"tools"`
	Metadata     json.RawMessage `json:"metadata"`
}

// skill is a skill or a tool of a cardBody.
type skill listing.Skill

// UnmarshalJSON reads a skill, which may be its name alone.
func (s *skill) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, &s.Name)
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	return d.Decode((*listing.Skill)(s))
}

// registered is the answer to a registration.
type registered struct {
	ID      agora.AgentID `json:"id"`
	Expires string        `json:"expires_at"` // RFC 3339
}

// register registers the agent in the path without a connection, or renews that.
func register(x *web.Exchange) error {
	id, err := idOf(x)
	if err != nil {
		return err
	}
	lasts, err := ttlOf(x)
	if err != nil {
		return err
	}
	body, err := x.JSON()
	if err != nil {
		return err
	}
	var c cardBody
	if err := web.Decode(body, &c); err != nil {
		return err
	}
	if c.Metadata != nil && c.Metadata[0] != '{' {
		return agora.Errorf(agora.InvalidRequest, "metadata must be an object")
	}
	card := agora.Agent{
		ID: id, Name: cmp.Or(c.Name, string(id)), Endpoint: c.Endpoint, Type: c.Type, Version: c.Version, Domain: c.Domain, Description: c.Description,
		Capabilities: c.Capabilities, Skills: cardSkills(c.Skills), Tools: cardSkills(c.Tools), Metadata: c.Metadata,
		Registration: agora.Registration{Media: "application/json", Body: body},
	}
	until, err := x.Actor.Register(x.Context(), card, lasts)
	if err != nil {
		return err
	}
	return x.Answer(http.StatusOK, registered{id, until.UTC().Format(time.RFC3339)})
}

func cardSkills(all []skill) (out []agora.Skill) {
	for _, s := range all {
		out = append(out, agora.Skill(s))
	}
	return out
}

// ttlOf returns how long a registration is to last; 0 where the request does not say.
func ttlOf(x *web.Exchange) (time.Duration, error) {
	text := x.Request.URL.Query().Get("ttl")
	if text == "" {
		return 0, nil
	}
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, agora.Errorf(agora.InvalidRequest, "ttl must be a duration such as 10m")
	}
	return d, nil
}

// unregister ends the registration of the agent in the path.
func unregister(x *web.Exchange) error {
	id, err := idOf(x)
	if err != nil {
		return err
	}
	return x.Actor.Unregister(x.Context(), id)
}
