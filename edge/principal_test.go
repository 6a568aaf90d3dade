package edge

import (
	"testing"

	"github.com/agora-relay/agora"
)

func TestAPrincipalOfOneAgentNamesIt(t *testing.T) {
	for _, c := range []struct {
		p    Principal
		want agora.AgentID
	}{
		{Principal{}, ""},
		{Principal{Any: true, Agents: []string{"a"}}, ""},
		{Principal{Agents: []string{"a"}}, "a"},
		{Principal{Agents: []string{"a/*"}}, ""},
		{Principal{Agents: []string{"a", "b"}}, ""},
	} {
		if got, ok := c.p.Sole(); got != c.want || ok != (c.want != "") {
			t.Errorf("%+v: the one agent is %q, %v, want %q", c.p, got, ok, c.want)
		}
	}
}
