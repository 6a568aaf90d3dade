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
// allowed. It is compared byte for byte, and never stands raw in a subject or
// a key: see [EncodeToken].
type AgentID string

// ParseAgentID returns s as an id, or an [InvalidRequest] error that says what
// is wrong with it.
func ParseAgentID(s string) (AgentID, error) {
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

// Address says whom a message is for: an agent's mailbox or a space. Exactly
// one of Agent and Space is set.
type Address struct {
	Tenant string
	Agent  AgentID
	Space  string
}

// ToAgent returns the address of an agent's mailbox.
func ToAgent(tenant string, id AgentID) Address { return Address{Tenant: tenant, Agent: id} }

// ToSpace returns the address of a space.
func ToSpace(tenant, name string) Address { return Address{Tenant: tenant, Space: name} }

// IsSpace tells a space from a mailbox.
func (a Address) IsSpace() bool { return a.Space != "" }

// Name returns the agent's id or the space's name.
func (a Address) Name() string {
	if a.IsSpace() {
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
