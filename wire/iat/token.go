package iat

import (
	"strings"

	"github.com/agora-relay/agora/internal/rawjson"
)

// TokenScan finds metadata.auth_token in the beginning of an envelope while that comes: it looks at each byte once. It finds what [Decode] takes for the token
// of the envelope, and checks nothing else of it. The zero value is ready to use.
type TokenScan struct {
	at       int  // the first byte that was not looked at
	depth    int  // objects and lists that are open
	inText   bool // in a string, which begins at text
	escaped  bool // behind a backslash
	text     int
	wantsKey bool   // the next string of the object is a key; of depths 1 and 2
	key      string // of the member of the envelope, or of its metadata
	metadata bool   // in its metadata
}

// Next looks at what has come of an envelope until now, of which the calls before were given the beginning. It returns the token once it is there; over is true when there is
// none, however much more comes.
func (s *TokenScan) Next(b []byte) (token string, over bool) {
	for ; s.at < len(b); s.at++ {
		c := b[s.at]
		switch {
		case !s.inText:
			if over = s.outside(c); over {
				return "", true
			}
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
		case c == '"':
			s.inText = false
			if token, is := s.string(b[s.text : s.at+1]); is {
				s.at++
				return token, token == ""
			}
		}
	}
	return "", false
}

// outside looks at a byte that stands in no string. It returns true where the envelope is over, or is none.
func (s *TokenScan) outside(c byte) (over bool) {
	switch c {
	case '"':
		s.inText, s.text = true, s.at
		return s.depth == 0
	case '{', '[':
		s.depth++
		if s.depth == 2 {
			s.metadata = c == '{' && !s.wantsKey && s.key == "metadata"
		}
		s.wantsKey = c == '{'
		return s.depth == 1 && c == '['
	case '}', ']':
		s.depth--
		s.metadata = s.metadata && s.depth >= 2
		s.wantsKey = false
		return s.depth <= 0
	case ',':
		s.wantsKey = s.depth == 1 || s.metadata && s.depth == 2
	case ':':
		s.wantsKey = false
	}
	return false
}

// string looks at a string. It returns the token where it is that.
func (s *TokenScan) string(raw []byte) (token string, is bool) {
	named := s.depth == 1 || s.metadata && s.depth == 2
	switch {
	case !named:
	case s.wantsKey:
		s.key = rawjson.Unquote(raw)
	case s.depth == 2 && s.key == "auth_token":
		return bearer(rawjson.Unquote(raw)), true
	}
	return "", false
}

// bearer returns a token without a leading "bearer ".
func bearer(token string) string {
	if n := len("bearer "); len(token) >= n && strings.EqualFold(token[:n], "bearer ") {
		return strings.TrimLeft(token[n:], " ")
	}
	return token
}
