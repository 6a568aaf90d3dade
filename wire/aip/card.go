package aip

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"net"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"google.golang.org/protobuf/proto"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Media types of an agent's Registration that is the very AgentInfo, or ToolBoxInfo, with which it registered.
const (
	MediaAgent   = "application/vnd.aip.agent+protobuf"
	MediaToolbox = "application/vnd.aip.toolbox+protobuf"
)

// What a card of AIP has as its Type.
const (
	TypeAgent   = "agent"
	TypeToolbox = "toolbox"
)

// about is what a card's Metadata say of a node besides.
type about struct {
	Address      string   `json:"address"`
	InputModes   []string `json:"input_modes,omitempty"`
	OutputModes  []string `json:"output_modes,omitempty"`
	Registration string   `json:"registration"` // see [Fingerprint]
}

// AgentCard returns the card of an agent that registers with an encoded AgentInfo, whose bytes the card keeps as its Registration. INVALID_REQUEST says what is wrong with it; what
// [agora.Agent.Check] bounds is left to that. A description that is too long for a card is cut, and a skill without a name, or with the name of an earlier one, is left out of it.
func AgentCard(raw []byte) (agora.Agent, error) {
	var info AgentInfo
	if err := unmarshal(raw, &info, "AgentInfo"); err != nil {
		return agora.Agent{}, err
	}
	card, err := newCard("agent_id", info.GetAgentId(), info.GetAddress(), agora.Registration{Media: MediaAgent, Body: raw}, about{
		InputModes: modeNames(info.GetInputMode()), OutputModes: modeNames(info.GetOutputMode()),
	})
	if err != nil {
		return card, err
	}
	card.Type, card.Name = TypeAgent, cmp.Or(info.GetName(), info.GetAgentId())
	card.Domain, card.Version, card.Description = info.GetDomain(), info.GetVersion(), cut(info.GetDescription())
	for _, s := range info.GetSkills() {
		card.Skills = withSkill(card.Skills, agora.Skill{Name: s.GetSkillId(), Description: cut(s.GetCapability())})
	}
	return card, nil
}

// ToolboxCard is [AgentCard] for a toolbox and its ToolBoxInfo. The arguments of a tool are its schema where they are the text of a JSON Schema of an object; else they are told at
// the end of its description.
func ToolboxCard(raw []byte) (agora.Agent, error) {
	var info ToolBoxInfo
	if err := unmarshal(raw, &info, "ToolBoxInfo"); err != nil {
		return agora.Agent{}, err
	}
	card, err := newCard("toolbox_id", info.GetToolboxId(), info.GetAddress(), agora.Registration{Media: MediaToolbox, Body: raw}, about{})
	if err != nil {
		return card, err
	}
	card.Type, card.Name = TypeToolbox, cmp.Or(info.GetName(), info.GetToolboxId())
	card.Domain, card.Description = info.GetDomain(), cut(info.GetDescription())
	for _, t := range info.GetTools() {
		card.Tools = withSkill(card.Tools, toolOf(t))
	}
	return card, nil
}

// Card returns the card of a node of either kind, as its registration's media type says.
func Card(r agora.Registration) (agora.Agent, error) {
	if r.Media == MediaToolbox {
		return ToolboxCard(r.Body)
	}
	return AgentCard(r.Body)
}

// unmarshal decodes what a node registers with.
func unmarshal(raw []byte, into proto.Message, what string) error {
	if len(raw) > MaxRegistration {
		return agora.Errorf(agora.InvalidRequest, "the registration has more than %d bytes", MaxRegistration)
	}
	return malformed(what, proto.Unmarshal(raw, into))
}

func newCard(field, id, address string, r agora.Registration, a about) (agora.Agent, error) {
	if _, err := agora.ParseOwnID(id); err != nil {
		return agora.Agent{}, agora.Errorf(agora.InvalidRequest, "%s: %s", field, agora.AsError(err).Message)
	}
	if err := CheckAddress(address); err != nil {
		return agora.Agent{}, err
	}
	a.Address, a.Registration = address, Fingerprint(r.Body)
	metadata, err := json.Marshal(a)
	if err != nil {
		return agora.Agent{}, err // a value that can always be written
	}
	return agora.Agent{ID: agora.AgentID(id), Dialect: Dialect, Metadata: metadata, Registration: r}, nil
}

// CheckAddress returns the INVALID_REQUEST of an address that is not HOST:PORT.
func CheckAddress(address string) error {
	if address == "" {
		return agora.Errorf(agora.InvalidRequest, "address is empty")
	}
	if len(address) > agora.MaxAddress {
		return agora.Errorf(agora.InvalidRequest, "address is longer than %d bytes", agora.MaxAddress)
	}
	host, port, err := net.SplitHostPort(address)
	if n, bad := strconv.ParseUint(port, 10, 16); err != nil || host == "" || bad != nil || n == 0 || !utf8.ValidString(host) {
		return agora.Errorf(agora.InvalidRequest, "address %q must be HOST:PORT, with a port from 1 to 65535", address)
	}
	return nil
}

// Fingerprint identifies a registration: two that differ have two.
func Fingerprint(registration []byte) string {
	sum := sha256.Sum256(registration)
	return hex.EncodeToString(sum[:16])
}

// AboutNode is what the card of a node says besides, also one without the bytes of its registration.
type AboutNode struct {
	Address     string // at which it serves
	Fingerprint string // of its registration
}

// About returns what the card of a node says besides; nothing for an agent of another dialect.
func About(card *agora.Agent) AboutNode {
	var a about
	if card.Dialect != Dialect || json.Unmarshal(card.Metadata, &a) != nil {
		return AboutNode{}
	}
	return AboutNode{a.Address, a.Registration}
}

// modeNames returns kinds of content by their names in lower case.
func modeNames(modes []Mode) (names []string) {
	for _, m := range modes {
		if name := strings.ToLower(m.String()); !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// modesOf returns the kinds of content that have such names.
func modesOf(names []string) (modes []Mode) {
	for _, name := range names {
		n, known := Mode_value[strings.ToUpper(name)]
		if number, err := strconv.ParseInt(name, 10, 32); !known && err == nil {
			n, known = int32(number), true
		}
		if known {
			modes = append(modes, Mode(n))
		}
	}
	return modes
}

// withSkill adds a skill that has a name of its own; none to more than a card may have, which its check refuses.
func withSkill(all []agora.Skill, s agora.Skill) []agora.Skill {
	if s.Name == "" || len(all) > agora.MaxSkills || slices.ContainsFunc(all, func(had agora.Skill) bool { return had.Name == s.Name }) {
		return all
	}
	return append(all, s)
}

// toolOf returns what a card says of a tool.
func toolOf(t *ToolInfo) agora.Skill {
	s := agora.Skill{Name: t.GetName(), Description: t.GetDescription()}
	if arguments := t.GetArguments(); isSchema(arguments) {
		s.Schema = json.RawMessage(arguments)
	} else if arguments != "" {
		s.Description = strings.TrimLeft(fmt.Sprintf("%s\nArguments: %s", s.Description, arguments), "\n")
	}
	s.Description = cut(s.Description)
	return s
}

// isSchema reports whether a text is an object that is meant as the JSON Schema of one: it says so by "$schema", by "type":"object", or by "properties" that are schemas. An object of names
// and what they stand for, as other toolboxes write their arguments, is none.
func isSchema(text string) bool {
	if !strings.HasPrefix(strings.TrimLeft(text, " \t\r\n"), "{") {
		return false
	}
	means, other := false, false
	o := rawjson.NewObject([]byte(text), agora.MaxSchemaDepth)
	for o.Next() {
		switch string(o.Name()) {
		case "$schema":
			means = means || isString(o.Val)
		case "type":
			is := isString(o.Val) && rawjson.Unquote(o.Val) == "object"
			means, other = means || is, other || !is
		case "properties":
			is := areSchemas(o.Val)
			means, other = means || is, other || !is
		}
	}
	return o.End() && means && !other
}

// areSchemas reports whether a value is an object of schemas.
func areSchemas(raw []byte) bool {
	if raw[0] != '{' {
		return false
	}
	o := rawjson.NewObject(raw, agora.MaxSchemaDepth)
	for o.Next() {
		if c := o.Val[0]; c != '{' && c != 't' && c != 'f' {
			return false
		}
	}
	return true
}

// cut returns a text as long as a card may have it.
func cut(s string) string {
	if len(s) <= agora.MaxDescription {
		return s
	}
	n := 0
	for at := range s {
		if n++; n > agora.MaxDescription {
			return s[:at]
		}
	}
	return s
}
