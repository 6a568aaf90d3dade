package listing_test

import (
	"encoding/json"
	"reflect"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/wire/listing"
)

func TestAnAgentIsToldAsTheProtocolSaysAndUnderstood(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 5, 4, 3, 2, 1, 999, time.FixedZone("", 3600))
	whole := agora.Agent{
		ID: "a", Name: "A", Endpoint: "http://a", Type: "t", Capabilities: []string{"c"}, Metadata: json.RawMessage(`{"m":1}`), RegisteredAt: at,
		Dialect: "iat", Domain: "d", Description: "D", Version: "1", Skills: []agora.Skill{{Name: "s"}},
		Tools: []agora.Skill{{Name: "t", Description: "T", Schema: json.RawMessage(`{}`)}}, Peer: "p", Addresses: []string{"/x"}, Status: agora.Online,
	}
	for _, c := range []struct {
		agent agora.Agent
		told  string
	}{
		{agora.Agent{ID: "a", Name: "A", RegisteredAt: at}, `{"id":"a","name":"A","registered_at":"2026-05-04T02:02:01Z","dialect":"agora"}`},
		{whole, `{"id":"a","name":"A","endpoint":"http://a","registered_at":"2026-05-04T02:02:01Z","status":"online","dialect":"iat","domain":"d","description":"D","type":"t","version":"1",` +
			`"peer":"p","addresses":["/x"],"capabilities":["c"],"skills":[{"name":"s"}],"tools":[{"name":"t","description":"T","schema":{}}],"metadata":{"m":1}}`},
	} {
		b, err := json.Marshal(listing.AgentOf(c.agent))
		if err != nil || string(b) != c.told {
			t.Errorf("told as %s (%v), want %s", b, err, c.told)
		}
		var got listing.Agent
		if err := json.Unmarshal(b, &got); err != nil {
			t.Fatal(err)
		}
		want := c.agent
		want.RegisteredAt, want.Dialect = at.UTC().Truncate(time.Second), c.agent.DialectName()
		if !reflect.DeepEqual(got.Agent(), want) {
			t.Errorf("understood as %+v, want %+v", got.Agent(), want)
		}
	}
}
