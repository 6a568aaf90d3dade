// Package bearer checks the token that an operator's request bears.
package bearer

import (
	"crypto/sha256"
	"crypto/subtle"
	"net/http"
	"os"
	"strings"

	"github.com/agora-relay/agora"
)

// Check returns nil where a request bears the token of a program's --admin.token-file. The file is read each time, so
// that it may be changed. UNAVAILABLE where it holds none, or can't be read; UNAUTHORIZED, of which the answer is to
// have the header WWW-Authenticate. How long it takes says nothing of the token.
func Check(r *http.Request, file, program string) error {
	b, err := os.ReadFile(file)
	token := strings.TrimSpace(string(b))
	if err != nil || token == "" {
		return agora.Errorf(agora.Unavailable, "the file of --admin.token-file is empty, or can't be read by user %d, as whom the %s runs", os.Geteuid(), program)
	}
	scheme, given, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	want, has := sha256.Sum256([]byte(token)), sha256.Sum256([]byte(strings.TrimSpace(given)))
	if !strings.EqualFold(scheme, "Bearer") || subtle.ConstantTimeCompare(want[:], has[:]) != 1 {
		return agora.Errorf(agora.Unauthorized, "a token is required: that of the %s's --admin.token-file", program)
	}
	return nil
}
