package wire

// isTraceparent tells whether a text is a traceparent of W3C Trace Context: a version, the id of a trace, that of a span, and flags,
// in lower-case hex, with dashes between. Later versions may have more behind that.
func isTraceparent(s string) bool {
	const size = 2 + 1 + 32 + 1 + 16 + 1 + 2
	if len(s) < size || s[2] != '-' || s[35] != '-' || s[52] != '-' || s[:2] == "ff" || s[:2] == "00" && len(s) > size || len(s) > size && s[size] != '-' {
		return false
	}
	return isHex(s[:2]) && isHex(s[3:35]) && isHex(s[36:52]) && isHex(s[53:size]) && !isZero(s[3:35]) && !isZero(s[36:52])
}

func isHex(s string) bool {
	for i := range len(s) {
		if c := s[i]; (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return true
}

func isZero(s string) bool {
	for i := range len(s) {
		if s[i] != '0' {
			return false
		}
	}
	return true
}

// TraceID returns the trace's id in a traceparent, "" where that is none.
func TraceID(traceparent string) string {
	if !isTraceparent(traceparent) {
		return ""
	}
	return traceparent[3:35]
}
