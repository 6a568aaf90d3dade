package load

// A text begins with the number of its flow, its own number there, and when it
// was due, each in digits of a fixed length; the rest is filled.
const (
	flowEnd = 6
	nEnd    = flowEnd + 10
	dueEnd  = nEnd + 19
)

// MinSize is the length of the shortest text.
const MinSize = dueEnd

// hello numbers texts that only try whether a way is open.
const hello = 9_999_999_999

func newText(size int) []byte {
	b := make([]byte, size)
	for i := range b {
		b[i] = 'x'
	}
	return b
}

// stamp writes into a text what it is; due is in nanoseconds since 1970.
func stamp(text []byte, flow int, n, due int64) {
	digits(text[:flowEnd], int64(flow))
	digits(text[flowEnd:nEnd], n)
	digits(text[nEnd:dueEnd], due)
}

// read returns what stamp wrote; ok is false for texts of others.
func read(text []byte) (flow int, n, due int64, ok bool) {
	if len(text) < MinSize {
		return 0, 0, 0, false
	}
	return int(value(text[:flowEnd])), value(text[flowEnd:nEnd]), value(text[nEnd:dueEnd]), true
}

func digits(b []byte, v int64) {
	for i := len(b) - 1; i >= 0; i-- {
		b[i] = '0' + byte(v%10)
		v /= 10
	}
}

func value(b []byte) (v int64) {
	for _, c := range b {
		v = v*10 + int64(c-'0')
	}
	return v
}
