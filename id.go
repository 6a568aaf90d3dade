package agora

import (
	"strings"
	"unicode"
	"unicode/utf8"
)

// DefaultTenant is the tenant of everyone until tenants are switched on.
const DefaultTenant = "default"

// MaxIDLength is the longest agent id, in runes.
const MaxIDLength = 128

// AgentID names an agent within its tenant: 1 to 128 printable runes, spaces
// allowed but at its ends, in normalization form C. It is compared byte for byte, and never stands raw in a subject or
// a key: see [EncodeToken].
type AgentID string

// ParseAgentID returns s as an id, or an [InvalidRequest] error that says what
// is wrong with it. Besides being printable an id is in Unicode's normalization form C,
// and nothing that does not show stands at its ends: two ids look alike nowhere.
func ParseAgentID(s string) (AgentID, error) {
	id, err := ParseStoredID(s)
	if err == nil {
		err = checkForm(s)
	}
	if err != nil {
		return "", err
	}
	return id, nil
}

// ParseStoredID is [ParseAgentID] as earlier versions had it: for who leaves, or is looked at and ended by operators,
// and may have come by such a version.
func ParseStoredID(s string) (AgentID, error) {
	if s == "" {
		return "", Errorf(InvalidRequest, "agent id is empty")
	}
	if !utf8.ValidString(s) {
		return "", Errorf(InvalidRequest, "agent id is not valid UTF-8")
	}
	if utf8.RuneCountInString(s) > MaxIDLength {
		return "", Errorf(InvalidRequest, "agent id is longer than %d characters", MaxIDLength)
	}
	for _, r := range s {
		if !unicode.IsPrint(r) {
			return "", Errorf(InvalidRequest, "agent id has the unprintable character %U", r)
		}
	}
	return AgentID(s), nil
}

// Cluster is the id of the cluster itself, as sender and as addressee: no agent may have it.
const Cluster AgentID = "agora"

// ParseOwnID is [ParseAgentID] for the id that an agent gives itself, which can't be [Cluster], nor look like it.
func ParseOwnID(s string) (AgentID, error) {
	id, err := ParseAgentID(s)
	switch {
	case err != nil:
		return "", err
	case id == Cluster:
		return "", Errorf(InvalidRequest, "agent id '%s' is the cluster's own", Cluster)
	case LooksLikeCluster(s):
		return "", Errorf(InvalidRequest, "agent id looks like '%s', which is the cluster's own", Cluster)
	}
	return id, nil
}

// Address says whom a message is for: an agent's mailbox, a space, or the box
// in which a call finds its answer. A mailbox has Agent alone, a space has Space
// alone; a box has both: Space is its name, and Agent who has called.
type Address struct {
	Tenant string
	Agent  AgentID
	Space  string
}

// ToAgent returns the address of an agent's mailbox.
func ToAgent(tenant string, id AgentID) Address { return Address{Tenant: tenant, Agent: id} }

// ToSpace returns the address of a space.
func ToSpace(tenant, name string) Address { return Address{Tenant: tenant, Space: name} }

// ToBox returns the address of a call's answer box. An empty caller stands for
// one that is not known: two addresses of one box lead to the same place in the
// log, whoever is said to have called.
func ToBox(tenant, box string, caller AgentID) Address {
	if caller == "" {
		caller = nobody
	}
	return Address{Tenant: tenant, Agent: caller, Space: box}
}

// nobody is no agent's id: it can't be printed.
const nobody AgentID = "\x00"

// IsSpace tells a space from mailboxes and boxes.
func (a Address) IsSpace() bool { return a.Space != "" && a.Agent == "" }

// IsBox tells a call's answer box from mailboxes and spaces.
func (a Address) IsBox() bool { return a.Space != "" && a.Agent != "" }

// Peer returns the address under which an agent knows whom it writes to: of a
// box that is the mailbox of its caller.
func (a Address) Peer() Address {
	if a.IsBox() {
		return Address{Tenant: a.Tenant, Agent: a.Agent}
	}
	return a
}

// Name returns the agent's id, the space's name or the box's.
func (a Address) Name() string {
	if a.Space != "" {
		return a.Space
	}
	return string(a.Agent)
}

const hexDigits = "0123456789ABCDEF"

// EncodeToken makes any string safe as one token of a NATS subject and as part
// of a Redis key: letters, digits, '-' and '_' stand for themselves, every
// other byte becomes '=' and two hex digits. [DecodeToken] reverses it; two
// strings never share a token.
func EncodeToken(s string) string {
	plain := 0
	for plain < len(s) && isTokenByte(s[plain]) {
		plain++
	}
	if plain == len(s) {
		return s
	}
	var b strings.Builder
	b.Grow(len(s) + 8)
	b.WriteString(s[:plain])
	for i := plain; i < len(s); i++ {
		if c := s[i]; isTokenByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('=')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// DecodeToken returns the string that [EncodeToken] made t from, or an error
// when it made no such token.
func DecodeToken(t string) (string, error) {
	if !strings.Contains(t, "=") {
		return checkToken(t, t)
	}
	var b strings.Builder
	for i := 0; i < len(t); i++ {
		if t[i] != '=' {
			b.WriteByte(t[i])
			continue
		}
		if i+2 >= len(t) {
			return "", Errorf(InvalidRequest, "token ends in the middle of an escape")
		}
		hi, lo := strings.IndexByte(hexDigits, t[i+1]), strings.IndexByte(hexDigits, t[i+2])
		if hi < 0 || lo < 0 {
			return "", Errorf(InvalidRequest, "token has a bad escape")
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	return checkToken(t, b.String())
}

// checkToken refuses a token that is not the one spelling of s.
func checkToken(t, s string) (string, error) {
	if EncodeToken(s) != t {
		return "", Errorf(InvalidRequest, "token is not in its one spelling")
	}
	return s, nil
}

func isTokenByte(c byte) bool {
	return 'a' <= c && c <= 'z' || 'A' <= c && c <= 'Z' || '0' <= c && c <= '9' || c == '-' || c == '_'
}
