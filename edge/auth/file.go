// Package auth says who is who: the verifiers of credentials behind every door.
package auth

import (
	"bufio"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"os"
	"strings"
	"unicode"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// None returns an authenticator that asks for nothing: everybody is the same
// party and may be any agent, but nobody may publish to system spaces.
func None() edge.Authenticator { return noAuth{} }

type noAuth struct{}

func (noAuth) Authenticate(context.Context, edge.Credentials) (edge.Principal, error) {
	return edge.Principal{Tenant: agora.DefaultTenant, Any: true}, nil
}

// TokenFile returns an authenticator that knows the principals of a file, read
// once. A line names one:
//
//	<name> sha256:<hex of the token's hash> agents=<pattern>[,<pattern>] [tenant=<name>] [system]
//
// A pattern is an agent id, or the beginning of one followed by '*'; as ids
// may hold spaces and commas, it is escaped like a URL query ("Jane+Doe",
// "a%2Cb"). Empty lines and those that begin with '#' say nothing. An error
// names the line and never quotes it.
func TokenFile(path string) (edge.Authenticator, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	t, err := parseTokens(f)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return t, nil
}

// tokens finds a principal by the hash of its token. A map's look-up takes
// time that depends on the hash, which tells nothing: whoever measures it
// learns about the hash of a guess, and tokens are 256 random bits, so guesses
// that share the first bits of a hash with a real token bring it no nearer.
type tokens map[[sha256.Size]byte]edge.Principal

func (t tokens) Authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	if c.Token == "" {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "a token is required")
	}
	p, ok := t[sha256.Sum256([]byte(c.Token))]
	if !ok {
		return edge.Principal{}, agora.Errorf(agora.Unauthorized, "the token is not valid")
	}
	return p, nil
}

func parseTokens(r io.Reader) (tokens, error) {
	known, names := tokens{}, map[string]bool{}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		hash, p, err := parseTokenLine(line)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", n, err)
		}
		if _, twice := known[hash]; twice || names[p.Name] {
			return nil, fmt.Errorf("line %d: name or token stands in the file twice", n)
		}
		known[hash], names[p.Name] = p, true
	}
	return known, lines.Err()
}

func parseTokenLine(line string) (hash [sha256.Size]byte, p edge.Principal, err error) {
	fields := strings.Fields(line)
	if len(fields) < 3 {
		return hash, p, fmt.Errorf("want <name> sha256:<hex> agents=<patterns>")
	}
	digits, ok := strings.CutPrefix(fields[1], "sha256:")
	if n, err := hex.Decode(hash[:], []byte(digits[:min(len(digits), 2*len(hash))])); !ok || err != nil || n != len(hash) || len(digits) != 2*n {
		return hash, p, fmt.Errorf("the second word must be sha256: and 64 hex digits")
	}
	p = edge.Principal{Name: fields[0], Tenant: agora.DefaultTenant}
	for _, f := range fields[2:] {
		if err := grant(&p, f); err != nil {
			return hash, p, err
		}
	}
	if len(p.Agents) == 0 {
		return hash, p, fmt.Errorf("agents= is missing")
	}
	return hash, p, nil
}

// grant adds what one word of a line says.
func grant(p *edge.Principal, word string) error {
	key, value, _ := strings.Cut(word, "=")
	switch key {
	case "agents":
		for pattern := range strings.SplitSeq(value, ",") {
			id, err := url.QueryUnescape(pattern)
			if err != nil || id == "" {
				return fmt.Errorf("agents= has an empty or badly escaped pattern")
			}
			p.Agents = append(p.Agents, id)
		}
	case "tenant":
		if value == "" {
			return fmt.Errorf("tenant= is empty")
		}
		p.Tenant = value
	case "system":
		p.System = true
	default:
		return fmt.Errorf("want agents=, tenant= or system, got another word")
	}
	return nil
}

// NewToken makes a token of 256 random bits, and the line that makes it known
// to [TokenFile]: for a principal that may be the agents of the patterns.
func NewToken(name string, agents []string, tenant string, system bool) (token, line string, err error) {
	if name == "" || name[0] == '#' || strings.ContainsFunc(name, unicode.IsSpace) {
		return "", "", fmt.Errorf("a principal's name has no spaces, is not empty and does not begin with '#'")
	}
	if len(agents) == 0 {
		return "", "", fmt.Errorf("a principal needs the pattern of at least one agent id")
	}
	escaped := make([]string, len(agents))
	for i, a := range agents {
		escaped[i] = strings.ReplaceAll(url.QueryEscape(a), "%2A", "*")
	}
	var random [32]byte
	rand.Read(random[:])
	token = "agora_" + hex.EncodeToString(random[:])
	line = fmt.Sprintf("%s sha256:%x agents=%s", name, sha256.Sum256([]byte(token)), strings.Join(escaped, ","))
	if tenant != "" && tenant != agora.DefaultTenant {
		line += " tenant=" + tenant
	}
	if system {
		line += " system"
	}
	_, _, err = parseTokenLine(line)
	return token, line, err
}
