package aip

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"testing"

	"google.golang.org/protobuf/encoding/protowire"
	"google.golang.org/protobuf/proto"
	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

func encoded(t testing.TB, m proto.Message) []byte {
	t.Helper()
	b, err := proto.Marshal(m)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// unknown is a field that the protocol does not have.
var unknown = appendField(nil, 77, "of a later version")

func TestAnAgentsCardSaysWhatItHasRegistered(t *testing.T) {
	raw := append(encoded(t, &AgentInfo{
		AgentId: "tr 1", Address: "10.0.0.7:50051", Name: "Translator", Domain: "languages", Description: "translates", Version: "1.2",
		InputMode: []Mode{Mode_TEXT, Mode_AUDIO}, OutputMode: []Mode{Mode_TEXT, 9},
		Skills: []*AgentInfo_AgentSkill{{SkillId: "translate", Capability: "between any two"}, {SkillId: "detect"}, {Capability: "nameless"}, {SkillId: "detect", Capability: "twice"}},
	}), unknown...)
	card, err := AgentCard(raw)
	if err != nil {
		t.Fatal(err)
	}
	if err := card.Check(1 << 20); err != nil {
		t.Fatal(err)
	}
	if card.ID != "tr 1" || card.Name != "Translator" || card.Domain != "languages" || card.Description != "translates" || card.Version != "1.2" || card.Dialect != Dialect || card.Type != TypeAgent {
		t.Errorf("the card is %+v", card)
	}
	if want := []agora.Skill{{Name: "translate", Description: "between any two"}, {Name: "detect"}}; !slices.EqualFunc(card.Skills, want, func(a, b agora.Skill) bool { return a.Name == b.Name && a.Description == b.Description }) {
		t.Errorf("its skills are %v, want %v", card.Skills, want)
	}
	if got := About(&card); got != (AboutNode{"10.0.0.7:50051", Fingerprint(raw)}) {
		t.Errorf("it is at %+v", got)
	}
	if want := `{"address":"10.0.0.7:50051","input_modes":["text","audio"],"output_modes":["text","9"],"registration":"` + Fingerprint(raw) + `"}`; string(card.Metadata) != want {
		t.Errorf("its metadata are %s, want %s", card.Metadata, want)
	}
	if got := encoded(t, PeerOf(&card, "elsewhere:1").GetAgentInfo()); !bytes.Equal(got, raw) {
		t.Errorf("it is listed as %x, want %x", got, raw)
	}
}

func TestAToolboxsCardHasSchemasWhereItsArgumentsAreSome(t *testing.T) {
	const schema = `{ "type": "object", "properties": {"q": {"type": "string"}} }`
	tools := []*ToolInfo{
		{Name: "search", Description: "finds", Arguments: schema, Version: "1"}, {Name: "now"}, {Name: "say", Description: "says", Arguments: `{"text": "what", "type": "str"}`}, {Name: "sum", Arguments: "a, b"},
		{Name: "old", Arguments: `{"$schema":"https://json-schema.org/draft/2020-12/schema"}`}, {Name: "new", Arguments: `{"properties":{"a":true}}`}, {Name: "odd", Arguments: `{"properties":{"a":"str"}}`},
		{Name: "half", Arguments: `{"type":"object"`}, {Name: "both", Arguments: `{"$schema":"x","type":"string"}`},
	}
	raw := append(encoded(t, &ToolBoxInfo{ToolboxId: "box", Address: "[::1]:9", Name: "Box", Domain: "d", Description: "tools", Tools: tools}), unknown...)
	card, err := ToolboxCard(raw)
	if err != nil {
		t.Fatal(err)
	}
	if card.Type != TypeToolbox || card.ID != "box" || card.Name != "Box" || card.Domain != "d" || card.Description != "tools" || len(card.Tools) != len(tools) {
		t.Fatalf("the card is %+v", card)
	}
	for n, want := range []agora.Skill{
		{Description: "finds", Schema: json.RawMessage(schema)}, {}, {Description: "says\nArguments: " + tools[2].Arguments}, {Description: "Arguments: a, b"}, {Schema: json.RawMessage(tools[4].Arguments)},
		{Schema: json.RawMessage(tools[5].Arguments)}, {Description: "Arguments: " + tools[6].Arguments}, {Description: "Arguments: " + tools[7].Arguments}, {Description: "Arguments: " + tools[8].Arguments},
	} {
		if got := card.Tools[n]; got.Name != tools[n].Name || got.Description != want.Description || string(got.Schema) != string(want.Schema) {
			t.Errorf("tool %d is %q %q %s, want %q %s", n, got.Name, got.Description, got.Schema, want.Description, want.Schema)
		}
	}
	if got := encoded(t, PeerOf(&card, "").GetToolboxInfo()); !bytes.Equal(got, raw) {
		t.Errorf("it is listed as %x, want %x", got, raw)
	}
	card.Registration = agora.Registration{}
	light := PeerOf(&card, "elsewhere:1").GetToolboxInfo()
	if light.GetAddress() != "[::1]:9" || light.GetTools()[0].GetArguments() != schema {
		t.Errorf("without its registration it is listed as %v", light)
	}
}

func TestRegistrationsOfNobodyAreRefused(t *testing.T) {
	for name, c := range map[string]struct {
		info *AgentInfo
		want string
	}{
		"no id":         {&AgentInfo{Address: "a:1"}, "agent_id: agent id is empty"},
		"a long id":     {&AgentInfo{AgentId: strings.Repeat("x", 129), Address: "a:1"}, "agent_id: agent id is longer than 128 characters"},
		"the cluster's": {&AgentInfo{AgentId: "agora", Address: "a:1"}, "agent_id: agent id 'agora' is the cluster's own"},
		"unprintable":   {&AgentInfo{AgentId: "a\nb", Address: "a:1"}, "agent_id: agent id has the unprintable character U+000A"},
		"no address":    {&AgentInfo{AgentId: "a"}, "address is empty"},
		"no port":       {&AgentInfo{AgentId: "a", Address: "host"}, `address "host" must be HOST:PORT, with a port from 1 to 65535`},
		"no host":       {&AgentInfo{AgentId: "a", Address: ":1"}, `address ":1" must be HOST:PORT, with a port from 1 to 65535`},
		"port 0":        {&AgentInfo{AgentId: "a", Address: "h:0"}, `address "h:0" must be HOST:PORT, with a port from 1 to 65535`},
		"port 65536":    {&AgentInfo{AgentId: "a", Address: "h:65536"}, `address "h:65536" must be HOST:PORT, with a port from 1 to 65535`},
		"a URL":         {&AgentInfo{AgentId: "a", Address: "http://h:1"}, `address "http://h:1" must be HOST:PORT, with a port from 1 to 65535`},
	} {
		if _, err := AgentCard(encoded(t, c.info)); !isCode(err, agora.InvalidRequest) || agora.AsError(err).Message != c.want {
			t.Errorf("%s: %v, want %q", name, err, c.want)
		}
	}
	if _, err := ToolboxCard(encoded(t, &ToolBoxInfo{Address: "a:1"})); !isCode(err, agora.InvalidRequest) || agora.AsError(err).Message != "toolbox_id: agent id is empty" {
		t.Errorf("a toolbox: %v", err)
	}
	for _, card := range []func([]byte) (agora.Agent, error){AgentCard, ToolboxCard} {
		if _, err := card([]byte("\x0a\x05x")); !isCode(err, agora.InvalidRequest) {
			t.Errorf("malformed: %v", err)
		}
	}
}

func TestARegistrationOutOfProportionIsRefused(t *testing.T) {
	skills := make([]*AgentInfo_AgentSkill, 20_000)
	for n := range skills {
		skills[n] = &AgentInfo_AgentSkill{SkillId: strconv.Itoa(n)}
	}
	card, err := AgentCard(encoded(t, &AgentInfo{AgentId: "a", Address: "h:1", Skills: skills}))
	if err != nil || !isCode(card.Check(1<<20), agora.InvalidRequest) {
		t.Errorf("%d skills are taken: %v", len(card.Skills), err)
	}
	if _, err := AgentCard(encoded(t, &AgentInfo{AgentId: "a", Address: "h:1", Description: strings.Repeat("x", MaxRegistration)})); !isCode(err, agora.InvalidRequest) {
		t.Errorf("more than %d bytes: %v", MaxRegistration, err)
	}
}

func TestALongDescriptionIsCutInTheCardAlone(t *testing.T) {
	raw := encoded(t, &AgentInfo{AgentId: "a", Address: "h:1", Description: strings.Repeat("é", 5000), Skills: []*AgentInfo_AgentSkill{{SkillId: "s", Capability: strings.Repeat("x", 5000)}}})
	card, err := AgentCard(raw)
	if err != nil || card.Check(1<<20) != nil || card.Description != strings.Repeat("é", agora.MaxDescription) || len(card.Skills[0].Description) != agora.MaxDescription {
		t.Errorf("%d bytes, %v, %v", len(card.Description), err, card.Check(1<<20))
	}
	if !bytes.Equal(encoded(t, PeerOf(&card, "").GetAgentInfo()), raw) {
		t.Error("the registration is cut")
	}
}

func TestAnAgentOfAnotherDialectIsListedAsAnAgentAtTheGateway(t *testing.T) {
	card := agora.Agent{
		ID: "rita", Description: "relays", Version: "2", Skills: []agora.Skill{{Name: "sum", Description: "adds"}, {Name: "x"}},
		Tools: []agora.Skill{{Name: "read", Description: "reads", Schema: json.RawMessage(`{}`)}, {Name: "x", Description: "twice"}},
	}
	want := &AgentInfo{
		AgentId: "rita", Address: "gw:50000", Name: "rita", Domain: "default", Description: "relays", Version: "2", InputMode: []Mode{Mode_TEXT}, OutputMode: []Mode{Mode_TEXT},
		Skills: []*AgentInfo_AgentSkill{{SkillId: "sum", Capability: "adds"}, {SkillId: "x"}, {SkillId: "read", Capability: "reads"}},
	}
	if got := PeerOf(&card, "gw:50000").GetAgentInfo(); !proto.Equal(got, want) {
		t.Errorf("it is listed as %v, want %v", got, want)
	}
	for domain, want := range map[string]bool{"": true, "default": true, "d": false} {
		if got := InDomain(&card, domain); got != want {
			t.Errorf("an agent without a domain is in %q: %v", domain, got)
		}
	}
	card.Domain = "d"
	for domain, want := range map[string]bool{"": true, "default": true, "d": true, "D": false} {
		if got := InDomain(&card, domain); got != want {
			t.Errorf("an agent of d is in %q: %v", domain, got)
		}
	}
}

func TestAPeersRegistrationIsReadAsProtobufReadsIt(t *testing.T) {
	infos := rapid.Custom(func(t *rapid.T) []byte {
		b, err := proto.Marshal(&AgentInfo{AgentId: rapid.SampledFrom([]string{"", "a", "b"}).Draw(t, "id"), Name: rapid.SampledFrom([]string{"", "n"}).Draw(t, "name"), InputMode: []Mode{1}})
		if err != nil {
			t.Fatal(err)
		}
		return append(b, rapid.SampledFrom([][]byte{nil, unknown}).Draw(t, "unknown")...)
	})
	thousand(t, func(t *rapid.T) {
		var raw, update []byte
		for range rapid.IntRange(0, 4).Draw(t, "fields") {
			if number := protowire.Number(rapid.IntRange(1, 3).Draw(t, "number")); number < 3 {
				raw = appendField(raw, number, infos.Draw(t, "info"))
			} else {
				raw = protowire.AppendVarint(protowire.AppendTag(raw, 1, protowire.VarintType), 1)
			}
		}
		cutAt := rapid.IntRange(0, 1).Draw(t, "split") * len(raw)
		for _, piece := range [][]byte{raw[:cutAt], raw[cutAt:]} {
			update = appendField(update, fieldNodeInfo, piece)
		}
		var want UpdateNodeInfoRequest
		if proto.Unmarshal(update, &want) != nil {
			t.Fatal("no request")
		}
		got, err := ReadUpdate(update)
		if err != nil {
			t.Fatal(err)
		}
		switch info := want.GetNodeInfo().GetInfoType().(type) {
		case *Peer_AgentInfo:
			var a AgentInfo
			if got.Media != MediaAgent || proto.Unmarshal(got.Body, &a) != nil || !proto.Equal(&a, info.AgentInfo) {
				t.Fatalf("got %v %v, want %v", got.Media, &a, info)
			}
		case *Peer_ToolboxInfo:
			var b ToolBoxInfo
			if got.Media != MediaToolbox || proto.Unmarshal(got.Body, &b) != nil || !proto.Equal(&b, info.ToolboxInfo) {
				t.Fatalf("got %v %v, want %v", got.Media, &b, info)
			}
		default:
			if got.Media != "" {
				t.Fatalf("got %+v, want nothing", got)
			}
		}
	})
}
