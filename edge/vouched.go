package edge

import (
	"encoding/json"
	"errors"
	"time"

	"github.com/agora-relay/agora/edge/policy"
)

// vouched is what stands in presence of a session whose connection an edge has dialled: for whom another edge is to
// dial it again. No credentials are in it: whether what they granted still holds is asked of the verifier that vouches
// for it.
type vouched struct {
	Dialect string        `json:"dialect"`
	Name    string        `json:"name,omitempty"`
	Tenant  string        `json:"tenant"`
	Any     bool          `json:"any,omitempty"`
	Agents  []string      `json:"agents,omitempty"`
	System  bool          `json:"system,omitempty"`
	Roles   []string      `json:"roles,omitempty"`
	Scope   *policy.Scope `json:"scope,omitempty"`
	ID      string        `json:"id,omitempty"`
	Source  string        `json:"source,omitempty"`
	Issued  time.Time     `json:"issued,omitzero"`
	Expires time.Time     `json:"expires,omitzero"`
}

// vouchedVersion begins it.
const vouchedVersion = '1'

// vouch writes down for whom a session of a dialect is.
func vouch(dialect string, p *Principal) ([]byte, error) {
	b, err := json.Marshal(vouched{
		Dialect: dialect, Name: p.Name, Tenant: p.Tenant, Any: p.Any, Agents: p.Agents, System: p.System, Roles: p.Roles, Scope: p.Scope,
		ID: p.ID, Source: p.Source, Issued: p.Issued, Expires: p.Expires,
	})
	return append([]byte{vouchedVersion}, b...), err
}

// readVouched reads what vouch wrote.
func readVouched(b []byte) (dialect string, p *Principal, err error) {
	var v vouched
	if len(b) == 0 || b[0] != vouchedVersion {
		return "", nil, errors.New("it is of another version")
	}
	if err := json.Unmarshal(b[1:], &v); err != nil {
		return "", nil, err
	}
	return v.Dialect, &Principal{
		Name: v.Name, Tenant: v.Tenant, Any: v.Any, Agents: v.Agents, System: v.System, Roles: v.Roles, Scope: v.Scope,
		ID: v.ID, Source: v.Source, Issued: v.Issued, Expires: v.Expires,
	}, nil
}
