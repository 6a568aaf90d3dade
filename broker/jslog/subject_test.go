package jslog

import (
	"strings"
	"testing"

	"github.com/agora-relay/agora"
)

func FuzzSubject(f *testing.F) {
	f.Add("default", "agent 1.*>☃", true)
	f.Add("", "=41", false)
	f.Fuzz(func(t *testing.T, tenant, name string, space bool) {
		if name == "" {
			return
		}
		to := agora.ToAgent(tenant, agora.AgentID(name))
		if space {
			to = agora.ToSpace(tenant, name)
		}
		p := Locate(to, 7)
		for _, s := range []string{p.Log(), p.Live} {
			if got, err := AddressOf(s); tenant != "" && (err != nil || got != to) {
				t.Fatalf("addressOf(%q) = %+v, %v; want %+v", s, got, err, to)
			}
			if strings.ContainsAny(s, " *>\r\n\t") {
				t.Fatalf("subject %q", s)
			}
		}
		if n := strings.Count(p.Fence(name), "."); n != 6 {
			t.Fatalf("fence %q has %d dots", p.Fence(name), n)
		}
	})
}

func TestAnAddressStaysWhereItIs(t *testing.T) {
	// Written down: another hash would lose every mailbox.
	for _, c := range []struct {
		to   agora.Address
		want string
	}{
		{agora.ToAgent("default", "agent-1"), "agora.log.default.agent.1.agent-1"},
		{agora.ToSpace("default", "task.42"), "agora.log.default.space.1.task=2E42"},
	} {
		if got := Locate(c.to, 4).Log(); got != c.want {
			t.Errorf("%v at %s, want %s", c.to, got, c.want)
		}
	}
}
