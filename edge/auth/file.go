package auth

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"net/url"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/internal/reload"
)

// TokenFile returns a way in for the tokens of a file, which is read again
// when it changes. A line names a principal:
//
//	<name> sha256:<hex of the token's hash> agents=<pattern>[,<pattern>] [tenant=<name>] [roles=<role>[,<role>]] [system]
//
// A pattern is an agent id, or the beginning of one followed by '*'; as ids
// may hold spaces and commas, it is escaped like a URL query ("Jane+Doe",
// "a%2Cb"). Empty lines and those that begin with '#' say nothing. An error
// names the line and never quotes it.
func TokenFile(path string) (Way, error) {
	f, err := reload.Open(path, func(b []byte) (tokens, error) { return parseTokens(bytes.NewReader(b)) })
	if err != nil {
		return nil, err
	}
	sum := sha256.Sum256([]byte(path))
	return &tokenFile{file: f, mark: fmt.Sprintf("file:%x:", sum[:4])}, nil
}

// tokenFile is the way in by the tokens of a file.
type tokenFile struct {
	file *reload.File[tokens]
	mark string // what the sources of its principals begin with
}

func (f *tokenFile) knows(c edge.Credentials) bool {
	_, ok := f.file.Get().byHash[sha256.Sum256([]byte(c.Token))]
	return c.Token != "" && ok
}

func (f *tokenFile) authenticate(_ context.Context, c edge.Credentials) (edge.Principal, error) {
	p, ok := f.file.Get().byHash[sha256.Sum256([]byte(c.Token))]
	if !ok { // the file has changed in between
		return p, errInvalid
	}
	p.Source = f.mark + p.Source
	return p, nil
}

// unused returns which principals of the file have ids that no agent may have, as earlier versions let agents have.
func (f *tokenFile) unused() (all []error) {
	for _, p := range f.file.Get().byHash {
		for _, pattern := range p.Agents {
			id, begins := strings.CutSuffix(pattern, "*")
			if begins {
				id += "x" // as one that begins so may go on
			}
			if _, err := agora.ParseOwnID(id); err != nil {
				all = append(all, fmt.Errorf("auth: %s: %s may be %q, which no agent is: %w", f.file.Name(), p.Name, pattern, err))
			}
		}
	}
	return all
}

func (f *tokenFile) standing(p *edge.Principal) error {
	line, mine := strings.CutPrefix(p.Source, f.mark)
	if !mine {
		return nil
	}
	switch now, ok := f.file.Get().sources[p.Name]; {
	case !ok || now.hash != hashOf(line):
		return errGone
	case now.line != line:
		return errChanged
	}
	return nil
}

func (f *tokenFile) sources() []reload.Source { return []reload.Source{f.file} }

// tokens are the principals of a file. A map's look-up by hash takes
// time that depends on the hash, which tells nothing: the one who measures it
// learns about the hash of a guess, and tokens are 256 random bits, so guesses
// that share the first bits of a hash with a real token bring it no nearer.
type tokens struct {
	byHash  map[[sha256.Size]byte]edge.Principal
	sources map[string]source // by name
}

// source says which line a principal is of.
type source struct{ hash, line string }

// sourceOf names a line without telling anything of it.
func sourceOf(hash [sha256.Size]byte, line string) source {
	s := source{hash: fmt.Sprintf("%x", hash[:8])}
	sum := sha256.Sum256([]byte(line))
	s.line = fmt.Sprintf("%s:%x", s.hash, sum[:8])
	return s
}

// hashOf returns the part of a principal's source that is of its token.
func hashOf(line string) string { return line[:max(0, strings.LastIndexByte(line, ':'))] }

func parseTokens(r io.Reader) (tokens, error) {
	known := tokens{byHash: map[[sha256.Size]byte]edge.Principal{}, sources: map[string]source{}}
	lines := bufio.NewScanner(r)
	for n := 1; lines.Scan(); n++ {
		line := strings.TrimSpace(lines.Text())
		if line == "" || line[0] == '#' {
			continue
		}
		hash, p, err := parseTokenLine(line)
		if err != nil {
			return known, fmt.Errorf("line %d: %w", n, err)
		}
		_, token := known.byHash[hash]
		if _, name := known.sources[p.Name]; name || token {
			return known, fmt.Errorf("line %d: name or token stands in the file twice", n)
		}
		s := sourceOf(hash, line)
		p.Source = s.line
		known.byHash[hash], known.sources[p.Name] = p, s
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
	p = edge.Principal{Name: fields[0], ID: fields[0]}
	for _, f := range fields[2:] {
		if err := grant(&p, f); err != nil {
			return hash, p, err
		}
	}
	if len(p.Agents) == 0 {
		return hash, p, fmt.Errorf("agents= is missing")
	}
	p.Tenant = cmp.Or(p.Tenant, agora.DefaultTenant)
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
		if !tenantName(value) {
			return fmt.Errorf("tenant= names no tenant")
		}
		if p.Tenant != "" {
			return fmt.Errorf("tenant= stands twice")
		}
		p.Tenant = value
	case "roles":
		for role := range strings.SplitSeq(value, ",") {
			if role == "" {
				return fmt.Errorf("roles= has an empty one")
			}
			p.Roles = append(p.Roles, role)
		}
	case "system":
		p.System = true
	default:
		return fmt.Errorf("want agents=, tenant=, roles= or system, got another word")
	}
	return nil
}
