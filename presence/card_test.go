package presence

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/agora-relay/agora"
)

// FuzzCard holds that whatever the server has for a card can be read, and that what was read is written so that it
// comes back the same.
func FuzzCard(f *testing.F) {
	seed, err := encodeCard(agora.Agent{
		ID: "a", Name: "A", Metadata: json.RawMessage(`{"x":1}`), Domain: "d", Addresses: []string{"x"},
		Skills: []agora.Skill{{Name: "s", Schema: json.RawMessage(`{ }`)}}, Tools: []agora.Skill{{Name: "t"}},
		Registration: agora.Registration{Media: "m", Body: []byte{0xff}},
	})
	if err != nil {
		f.Fatal(err)
	}
	f.Add(seed.card, seed.detail)
	f.Add(`1{"id":"a","name":"n","capabilities":["x"],"metadata":"{}","registered_at":1}`, "")
	f.Add(`2{"detail":"`+sum("")+`"}`, "")
	f.Add(`2{"skills":[{}],"detail":"`+sum(`1{"skills":{"-1":"x","7":"y"}}`)+`"}`, `1{"skills":{"-1":"x","7":"y"}}`)
	f.Add(`3{"id":"a"}`, "x")
	f.Fuzz(func(t *testing.T, card, detail string) {
		first := decodeCard("a", storedCard{card, detail}, 1)
		stored, err := encodeCard(first)
		if err != nil {
			t.Fatal(err)
		}
		second := decodeCard("a", stored, 1)
		again, err := encodeCard(second)
		if err != nil || again != stored || second.Size() != first.Size() {
			t.Errorf("%+v comes back as %+v: %v", first, second, err)
		}
		if light := decodeCard("a", storedCard{card: stored.card}, 1); light.Registration.Body != nil || !reflect.DeepEqual(light.Addresses, second.Addresses) {
			t.Errorf("light %+v of %+v", light, second)
		}
	})
}

// An edge that reads less than what another one has written leaves it alone, rather than taking the card for a bare
// one.
func TestACardOfAVersionFromTheFutureIsNotUnpacked(t *testing.T) {
	light, detail, err := PackCard(agora.Agent{ID: "a", Name: "A", Registration: agora.Registration{Media: "m", Body: []byte{0xff}}})
	if err != nil {
		t.Fatal(err)
	}
	if a, known := UnpackCard("a", light, detail); !known || a.Name != "A" || string(a.Registration.Body) != "\xff" {
		t.Errorf("UnpackCard = %+v, %t", a, known)
	}
	for _, light := range []string{"", "9{}"} {
		if a, known := UnpackCard("a", []byte(light), nil); known {
			t.Errorf("UnpackCard(%q) = %+v", light, a)
		}
	}
}
