package presence

import (
	"encoding/json"
	"hash/fnv"
	"strconv"
	"strings"
	"time"

	"github.com/agora-relay/agora"
)

// The version that begins every stored card. The second is written only for what the first can't say, so that edges
// that know no other can read the rest.
const (
	cardVersion = '1'
	fullVersion = '2'
)

// bareBegin begins, behind its version, the card of an agent that has said nothing of itself but its dialect: see
// listing.
const bareBegin = `{"bare":true`

// card is an agent's card as it is stored, in the field "card". Metadata is a string, so that it comes back byte for
// byte. What is long and no list needs stands in the field "detail".
type card struct {
	Bare         bool          `json:"bare,omitempty"` // first: see bareBegin
	ID           agora.AgentID `json:"id"`
	Name         string        `json:"name,omitempty"`
	Endpoint     string        `json:"endpoint,omitempty"`
	Type         string        `json:"type,omitempty"`
	Capabilities []string      `json:"capabilities,omitempty"`
	Metadata     string        `json:"metadata,omitempty"`
	RegisteredAt int64         `json:"registered_at,omitempty"` // µs
	more
}

// more is what a card of the second version has besides.
type more struct {
	Dialect     string   `json:"dialect,omitempty"`
	Domain      string   `json:"domain,omitempty"`
	Description string   `json:"description,omitempty"`
	Version     string   `json:"version,omitempty"`
	Skills      []skill  `json:"skills,omitempty"`
	Tools       []skill  `json:"tools,omitempty"`
	Peer        string   `json:"peer,omitempty"`
	Addresses   []string `json:"addresses,omitempty"`
	Detail      string   `json:"detail,omitempty"` // sum of the detail that belongs to the card; empty where it has none
}

type skill struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
}

// detailVersion begins every stored detail.
const detailVersion = '1'

// detail is what belongs to a card and no list needs: schemas by the index of their skill or tool, as strings, so that
// they come back byte for byte, and the registration's own bytes.
type detail struct {
	Skills map[int]string `json:"skills,omitempty"`
	Tools  map[int]string `json:"tools,omitempty"`
	Media  string         `json:"media,omitempty"`
	Body   []byte         `json:"body,omitempty"`
}

// storedCard is a card as the fields of a record hold it.
type storedCard struct{ card, detail string }

func encodeCard(a agora.Agent) (storedCard, error) {
	var s storedCard
	c := card{
		Bare: a.Bare(), ID: a.ID, Name: a.Name, Endpoint: a.Endpoint, Type: a.Type, Capabilities: a.Capabilities, Metadata: string(a.Metadata),
		more: more{
			Domain: a.Domain, Description: a.Description, Version: a.Version, Peer: a.Peer, Addresses: a.Addresses,
		},
	}
	if a.Dialect != agora.OwnDialect {
		c.Dialect = a.Dialect
	}
	if !a.RegisteredAt.IsZero() {
		c.RegisteredAt = a.RegisteredAt.UnixMicro()
	}
	d := detail{Media: a.Registration.Media, Body: a.Registration.Body}
	c.Skills, d.Skills = apart(a.Skills)
	c.Tools, d.Tools = apart(a.Tools)
	if d.Skills != nil || d.Tools != nil || d.Media != "" || d.Body != nil {
		b, err := json.Marshal(d)
		if err != nil {
			return s, err
		}
		s.detail = string(detailVersion) + string(b)
		c.Detail = sum(s.detail)
	}
	version := cardVersion
	if !c.more.empty() {
		version = fullVersion
	}
	b, err := json.Marshal(c)
	s.card = string(version) + string(b)
	return s, err
}

// PackCard returns a card, schemas and registration included, as it is stored: for another edge, which reads it with
// UnpackCard.
func PackCard(a agora.Agent) (light, detail []byte, err error) {
	s, err := encodeCard(a)
	return []byte(s.card), []byte(s.detail), err
}

// UnpackCard reads what PackCard made; false where that is of a version that it does not know.
func UnpackCard(id agora.AgentID, light, detail []byte) (agora.Agent, bool) {
	known := len(light) > 0 && (light[0] == cardVersion || light[0] == fullVersion)
	return decodeCard(id, storedCard{card: string(light), detail: string(detail)}, 0), known
}

func (m *more) empty() bool {
	return m.Dialect == "" && m.Domain == "" && m.Description == "" && m.Version == "" && m.Peer == "" && m.Detail == "" &&
		len(m.Skills)+len(m.Tools)+len(m.Addresses) == 0
}

// apart returns skills without their schemas, and those by index.
func apart(all []agora.Skill) (light []skill, schemas map[int]string) {
	for i, s := range all {
		light = append(light, skill{s.Name, s.Description})
		if s.Schema == nil {
			continue
		}
		if schemas == nil {
			schemas = map[int]string{}
		}
		schemas[i] = string(s.Schema)
	}
	return light, schemas
}

// together undoes apart.
func together(light []skill, schemas map[int]string) (all []agora.Skill) {
	for i, s := range light {
		all = append(all, agora.Skill{Name: s.Name, Description: s.Description})
		if schema, ok := schemas[i]; ok {
			all[i].Schema = json.RawMessage(schema)
		}
	}
	return all
}

// sum tells details apart.
func sum(s string) string {
	h := fnv.New64a()
	_, _ = h.Write([]byte(s)) // never fails
	return strconv.FormatUint(h.Sum64(), 36)
}

// decodeCard reads a card, with its detail where that is given; since, in ms, is when the session began by the server's
// clock. Of a card in a version from the future only the id is known. A detail that belongs to another card, which an
// edge that knows none has left, is none.
func decodeCard(id agora.AgentID, s storedCard, since int64) agora.Agent {
	a := agora.Agent{ID: id, Name: string(id), RegisteredAt: millis(since)}
	var c card
	if s.card == "" || s.card[0] != cardVersion && s.card[0] != fullVersion || json.Unmarshal([]byte(s.card[1:]), &c) != nil {
		return a
	}
	a.Name, a.Endpoint, a.Type, a.Capabilities = c.Name, c.Endpoint, c.Type, c.Capabilities
	if c.Metadata != "" {
		a.Metadata = json.RawMessage(c.Metadata)
	}
	if c.RegisteredAt != 0 {
		a.RegisteredAt = time.UnixMicro(c.RegisteredAt)
	}
	a.Dialect, a.Domain, a.Description, a.Version, a.Peer, a.Addresses = c.Dialect, c.Domain, c.Description, c.Version, c.Peer, c.Addresses
	var d detail
	if s.detail != "" && c.Detail == sum(s.detail) && s.detail[0] == detailVersion && json.Unmarshal([]byte(s.detail[1:]), &d) != nil {
		d = detail{}
	}
	a.Skills, a.Tools = together(c.Skills, d.Skills), together(c.Tools, d.Tools)
	a.Registration = agora.Registration{Media: d.Media, Body: d.Body}
	return a
}

// isBare reports whether a stored card says nothing of its agent.
func (s storedCard) isBare() bool { return len(s.card) > 0 && strings.HasPrefix(s.card[1:], bareBegin) }

// millis is a stored time; 0 is the zero time.
func millis(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms)
}

// stored is a time as it is stored.
func stored(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}
