package auth

import (
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/url"
	"strings"
	"unicode"

	"github.com/agora-relay/agora"
)

// Line is what a line of a token file says of a principal.
type Line struct {
	Name   string
	Agents []string // patterns of the ids that it may be; at least one
	Tenant string   // the default one if empty
	Roles  []string
	System bool // may publish to system spaces
}

// NewToken makes a token of 256 random bits, and the line that makes it known
// to [TokenFile].
func NewToken(l Line) (token, line string, err error) {
	if l.Name == "" || l.Name[0] == '#' || strings.ContainsFunc(l.Name, unicode.IsSpace) {
		return "", "", fmt.Errorf("a principal's name has no spaces, is not empty and does not begin with '#'")
	}
	if len(l.Agents) == 0 {
		return "", "", fmt.Errorf("a principal needs the pattern of at least one agent id")
	}
	escaped := make([]string, len(l.Agents))
	for i, a := range l.Agents {
		escaped[i] = strings.ReplaceAll(url.QueryEscape(a), "%2A", "*")
	}
	var random [32]byte
	rand.Read(random[:])
	token = "agora_" + hex.EncodeToString(random[:])
	line = fmt.Sprintf("%s sha256:%x agents=%s", l.Name, sha256.Sum256([]byte(token)), strings.Join(escaped, ","))
	if l.Tenant != "" && l.Tenant != agora.DefaultTenant {
		line += " tenant=" + l.Tenant
	}
	if len(l.Roles) > 0 {
		line += " roles=" + strings.Join(l.Roles, ",")
	}
	if l.System {
		line += " system"
	}
	_, _, err = parseTokenLine(line)
	return token, line, err
}
