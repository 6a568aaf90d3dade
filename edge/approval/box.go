package approval

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"

	"github.com/agora-relay/agora"
)

// boxSize is the length of a box's name: a letter, and 160 bits.
const boxSize = 1 + 40

// Box returns the name of the answer box that a request for approval names, and under which it stands in the book: the
// same for the same asker and id. It begins with "a", as no name of a call's box does.
func Box(tenant string, agent agora.AgentID, id string) string {
	h := sha256.New()
	for _, s := range [...]string{tenant, string(agent), id} {
		h.Write(strconv.AppendInt(nil, int64(len(s)), 10))
		h.Write([]byte{' '})
		h.Write([]byte(s))
	}
	return "a" + hex.EncodeToString(h.Sum(nil)[:20])
}

// IsBox reports whether a box is that of an approval.
func IsBox(name string) bool {
	return len(name) == boxSize && name[0] == 'a' && strings.Trim(name[1:], "0123456789abcdef") == ""
}
