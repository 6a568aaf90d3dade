package simlog

import "strings"

// What the subjects that matter begin with.
const (
	logPrefix    = "agora.log."
	fencePrefix  = "agora.fence."
	bookPrefix   = "agora.book."
	livePrefix   = "agora.live."
	apiPrefix    = "$JS.API."
	directPrefix = "$JS.API.DIRECT.GET."
	streamPrefix = "AGORA_"
	bookStream   = streamPrefix + "BOOK"
)

// kindOf returns which kind of stream a client's frame is for; "" for none.
func kindOf(subject string) string { return kindOfStream(streamOf(subject)) }

// kindOfStream returns the kind of a stream by its name; "" for one that is not Agora's.
func kindOfStream(name string) string {
	rest, ok := strings.CutPrefix(name, streamPrefix)
	if !ok {
		return ""
	}
	kind, _, _ := strings.Cut(rest, "_")
	return strings.ToLower(kind)
}

// streamOf returns the name of the stream that a client's frame is for; "" for none.
func streamOf(subject string) string {
	for _, p := range []string{logPrefix, fencePrefix} {
		if rest, ok := strings.CutPrefix(subject, p); ok {
			if words := strings.SplitN(rest, ".", 4); len(words) == 4 {
				return streamPrefix + strings.ToUpper(words[1]) + "_" + words[2]
			}
		}
	}
	if strings.HasPrefix(subject, bookPrefix) {
		return bookStream
	}
	if !strings.HasPrefix(subject, apiPrefix) {
		return ""
	}
	for word := range strings.SplitSeq(subject, ".") {
		if strings.HasPrefix(word, streamPrefix) {
			return word
		}
	}
	return ""
}

// forgetKind takes what is known of a kind's streams out of a map by stream.
func forgetKind(of map[string][]stored, kind string) {
	for stream := range of {
		if kindOfStream(stream) == kind {
			delete(of, stream)
		}
	}
}

// matches reports whether a subject is one of those that a subscription is for.
func matches(subscription, subject string) bool {
	pattern, words := strings.Split(subscription, "."), strings.Split(subject, ".")
	for k, p := range pattern {
		if p == ">" {
			return len(words) > k
		}
		if k >= len(words) || p != "*" && p != words[k] {
			return false
		}
	}
	return len(words) == len(pattern)
}
