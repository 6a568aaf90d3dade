package edge

import "strings"

// resumeToken is what an agent presents to go on with its session: the session's id, so that another one of
// the same agent is never taken for it, and the secret that is renewed with every claim.
func resumeToken(session, secret string) string { return session + "." + secret }

// parseResumeToken returns the parts of a resume token; one without a session is all secret.
func parseResumeToken(token string) (session, secret string) {
	session, secret, ok := strings.Cut(token, ".")
	if !ok {
		return "", token
	}
	return session, secret
}
