package rest

import (
	"encoding/json"
	"io"
	"net/http"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

func TestTheProtocolIsShownWithTheLimitsOfTheEdge(t *testing.T) {
	t.Parallel()
	s := serve(t, agoratest.Start(t, agoratest.Options{Edges: 1}))
	r, err := s.one.Get(s.Server.URL + "/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	b, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK || len(b) > 256<<10 {
		t.Fatalf("%s, %v, %d bytes", r.Status, err, len(b))
	}
	var doc struct {
		AsyncAPI   string
		Components struct {
			Messages map[string]struct {
				Payload struct{ Properties map[string]struct{ MaxLength int } }
			}
		}
	}
	if err := json.Unmarshal(b, &doc); err != nil {
		t.Fatal(err)
	}
	join := doc.Components.Messages["space-join-fromClient"]
	if doc.AsyncAPI != "3.0.0" || join.Payload.Properties["space"].MaxLength != 77 {
		t.Errorf("AsyncAPI %q, a space has %+v", doc.AsyncAPI, join.Payload.Properties["space"])
	}
	if len(doc.Components.Messages["space-list-fromServer"].Payload.Properties) == 0 {
		t.Error("a frame of the edge is missing")
	}
}
