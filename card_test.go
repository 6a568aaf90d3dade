package agora_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func nested(n int) json.RawMessage {
	return json.RawMessage(strings.Repeat(`{"a":`, n-1) + "{}" + strings.Repeat("}", n-1))
}

func many(n int) []agora.Skill {
	all := make([]agora.Skill, n)
	for i := range all {
		all[i].Name = fmt.Sprint("s", i)
	}
	return all
}

func TestACardThatIsNotAsItMayBeIsRefusedWithThePlace(t *testing.T) {
	long := func(n int) string { return strings.Repeat("ä", n) }
	for want, a := range map[string]agora.Agent{
		"agent id 'agora' is the cluster's own":             {ID: "agora"},
		"agent id is empty":                                 {},
		"card is larger than 4096 bytes":                    {ID: "a", Metadata: json.RawMessage(`"` + long(2048) + `"`)},
		"domain is longer than 256 characters":              {ID: "a", Domain: long(257)},
		"version is not valid UTF-8":                        {ID: "a", Version: "\xff"},
		"skills has more than 256 entries":                  {ID: "a", Skills: many(257)},
		"tools[2].name is missing":                          {ID: "a", Tools: append(many(2), agora.Skill{})},
		"tools[1].name is longer than 128 characters":       {ID: "a", Tools: append(many(1), agora.Skill{Name: long(129)})},
		"skills[2].name stands twice":                       {ID: "a", Skills: append(many(2), agora.Skill{Name: "s0"})},
		"skills[3].schema is deeper than 32":                {ID: "a", Skills: append(many(3), agora.Skill{Name: "x", Schema: nested(33)})},
		"skills[0].schema is not JSON":                      {ID: "a", Skills: []agora.Skill{{Name: "x", Schema: json.RawMessage(`{`)}}},
		"skills[0].schema must be an object, true or false": {ID: "a", Skills: []agora.Skill{{Name: "x", Schema: json.RawMessage(` 1`)}}},
		"addresses has more than 64 entries":                {ID: "a", Addresses: make([]string, 65)},
		"addresses[1] is longer than 512 characters":        {ID: "a", Addresses: []string{"x", long(513)}},
	} {
		err := a.Check(4096)
		if err == nil || agora.AsError(err).Code != agora.InvalidRequest || agora.AsError(err).Message != want {
			t.Errorf("Check = %v, want INVALID_REQUEST: %s", err, want)
		}
	}
}

func TestACardWithinItsBoundsIsTaken(t *testing.T) {
	a := agora.Agent{
		ID: "a", Domain: strings.Repeat("ä", 256), Skills: many(256), Tools: many(256), Addresses: make([]string, 64),
	}
	a.Tools[0].Schema, a.Tools[1].Schema = nested(32), json.RawMessage(`{"x":"]}[[[[\"{{{{{"}`)
	if err := a.Check(a.Size()); err != nil {
		t.Errorf("Check = %v, want nil", err)
	}
	if err := a.Check(a.Size() - 1); err == nil {
		t.Error("a card that is a byte too large was taken")
	}
}

func TestACardIsBareThatSaysNothingButItsID(t *testing.T) {
	for _, a := range []agora.Agent{{ID: "a"}, {ID: "a", Name: "a"}, {ID: "a", Name: "a", Dialect: "iat"}} {
		if !a.Bare() {
			t.Errorf("%+v is not bare", a)
		}
	}
	for _, a := range []agora.Agent{{ID: "a", Name: "b"}, {ID: "a", Type: "x"}, {ID: "a", Capabilities: []string{""}}, {ID: "a", Skills: many(1)}} {
		if a.Bare() {
			t.Errorf("%+v is bare", a)
		}
	}
}
