package policy

import (
	"errors"
	"fmt"

	"github.com/agora-relay/agora"
)

// Unusable returns which ids that rules spell out no agent can have: such a rule does nothing. It is no reason to
// refuse the policy, which may be older than a rule about ids. A pattern that stands for several ids is not looked at.
func (r *Rules) Unusable() error {
	var all []error
	for _, rule := range r.rules {
		for _, v := range []struct {
			verb  Verb
			name  string
			parse func(string) (agora.AgentID, error)
		}{{Be, "agents", agora.ParseOwnID}, {Send, "send", agora.ParseAgentID}, {Approve, "approve", agora.ParseAgentID}} {
			for _, p := range rule.patterns[v.verb] {
				if len(p) != 1 || p[0].kind != literal {
					continue
				}
				if _, err := v.parse(p[0].text); err != nil {
					all = append(all, fmt.Errorf("rule %q: %s: %.40q: %s", rule.name, v.name, p[0].text, agora.AsError(err).Message))
				}
			}
		}
	}
	return errors.Join(all...)
}
