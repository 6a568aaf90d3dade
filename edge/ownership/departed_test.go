package ownership

import (
	"testing"
	"time"

	"github.com/agora-relay/agora/presence"
)

func TestOfTheSessionsThatLeftTheYoungestOfAnAgentIsKeptUntilItIsSuperseded(t *testing.T) {
	var d departed
	claim := func(epoch uint64) presence.Claim { return presence.Claim{Tenant: "t", Agent: "a", Epoch: epoch} }
	until := time.Now().Add(time.Hour)
	d.add(presence.Held{Claim: claim(2)}, until)
	d.add(presence.Held{Claim: claim(1)}, until) // one that was slow to leave
	d.dropClaims([]presence.Claim{claim(1)})
	if got := d.claims(); len(got) != 1 || got[0].Epoch != 2 {
		t.Fatalf("kept are %+v, want the claim of epoch 2", got)
	}
	d.dropClaims([]presence.Claim{claim(2)})
	if got := d.claims(); len(got) != 0 {
		t.Errorf("kept are %+v, want none", got)
	}
}
