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
