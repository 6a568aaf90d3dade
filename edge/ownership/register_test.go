package ownership

import (
	"fmt"
	"testing"
	"time"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/presence"
)

func TestWhoRegistersMostIsForgottenFirst(t *testing.T) {
	t.Parallel()
	var d registrations
	until := time.Now().Add(time.Hour)
	add := func(principal string, n int) {
		for k := range n {
			card := agora.Agent{ID: agora.AgentID(fmt.Sprint(principal, "/", k)), Name: "x"}
			d.add(presence.Registration{Tenant: "t", Principal: principal, Card: card}, until)
		}
	}
	add("joe", 100)
	add("mall", maxRegistered+1000)
	if held := d.of[Registrant{"t", "joe"}]; held == nil || len(held.held) != 100 {
		t.Errorf("of joe's registrations %+v are kept, want all", held)
	}
	if len(d.held) != maxRegistered || len(d.all()) != maxRegistered {
		t.Errorf("%d are kept, want %d", len(d.held), maxRegistered)
	}
	for _, r := range d.all() {
		d.drop(agora.ToAgent(r.Tenant, r.Card.ID))
	}
	if len(d.held)+len(d.of)+d.size != 0 {
		t.Errorf("left: %d, of %d principals, %d bytes", len(d.held), len(d.of), d.size)
	}
}
