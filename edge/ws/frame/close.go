package frame

import "unicode/utf8"

// Codes of a close frame (RFC 6455 section 7.4, and the IANA registry).
const (
	CloseNormal   = 1000
	CloseAway     = 1001
	CloseProtocol = 1002
	CloseNoStatus = 1005 // stands for none, and is never sent
	ClosePolicy   = 1008
	CloseTooBig   = 1009
	CloseRestart  = 1012
	CloseTryLater = 1013
)

// CloseCode returns the code that the payload of a peer's close frame has, [CloseNoStatus] where it is empty. The error is a [Breach].
func CloseCode(payload []byte) (int, error) {
	if len(payload) == 0 {
		return CloseNoStatus, nil
	}
	if len(payload) > 1 {
		code := int(payload[0])<<8 | int(payload[1])
		if maySay(code) && utf8.Valid(payload[2:]) {
			return code, nil
		}
	}
	return 0, broken("the close frame is not one")
}

// maySay tells whether a peer may close with a code.
func maySay(code int) bool {
	switch {
	case code == 1004 || code == CloseNoStatus || code == 1006:
		return false
	}
	return code >= CloseNormal && code <= 1014 || code >= 3000 && code < 5000
}
