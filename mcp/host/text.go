package host

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/mcp/inbox"
)

// A result of a tool has what it says twice, as a structure and as text, and both together have at most maxResult bytes
// of JSON or so. contentRoom is what one of both has for contents; what is longer is read on from where it was cut.
const (
	maxResult   = 8 << 10
	contentRoom = 3 << 10
)

// cut returns what of a text begins at a byte, as much as fits into a JSON string of about so many bytes, and where the
// rest begins; 0 where there is none.
func cut(text string, from, room int) (piece string, next int) {
	from = min(max(from, 0), len(text))
	for from < len(text) && !utf8.RuneStart(text[from]) {
		from++
	}
	for at, r := range text[from:] {
		if room -= cost(r); room < 0 && at > 0 {
			return text[from : from+at], from + at
		}
	}
	return text[from:], 0
}

// cost returns how many bytes a character has in a JSON string, at most.
func cost(r rune) int {
	switch {
	case r == '"' || r == '\\' || r == '\n' || r == '\t' || r == '\r':
		return 2
	case r < ' ' || r == '<' || r == '>' || r == '&' || r == 0x7f || r == 0x2028 || r == 0x2029:
		return len(`\u0000`)
	}
	return utf8.RuneLen(r)
}

// costOf returns how many bytes a text has in a JSON string, at most.
func costOf(text string) (n int) {
	for _, r := range text {
		n += cost(r)
	}
	return n
}

// textOf returns what a message says, as text: that of its payload where that is {"text":…}, else its payload as JSON;
// behind it what was streamed, and what the stream ended with.
func textOf(it inbox.Item) string {
	text := payloadText(it.Payload)
	for _, more := range []string{it.Text, payloadText(it.End)} {
		if text != "" && more != "" {
			text += "\n"
		}
		text += more
	}
	return text
}

// payloadText returns a payload as text: its "text" where that is all it has beside a request_id, a string as what it
// is, any other JSON as JSON.
func payloadText(payload json.RawMessage) string {
	trimmed := bytes.TrimSpace(payload)
	switch {
	case len(trimmed) == 0 || string(trimmed) == "null":
		return ""
	case trimmed[0] == '"':
		return rawjson.Unquote(trimmed)
	case trimmed[0] != '{':
		return string(trimmed)
	}
	if text, ok := plainText(trimmed); ok {
		return text
	}
	return string(payload)
}

// deepest is how deeply values are looked into, which is as deeply as anything decodes them.
const deepest = 10000

// plainText returns the text of an object that says nothing else: it has a text, or a request_id, or both, and each
// once.
func plainText(object []byte) (text string, ok bool) {
	var raw []byte
	all, texts, names := 0, 0, 0
	for o := rawjson.NewObject(object, deepest); o.Next(); all++ {
		switch string(o.Name()) {
		case "text":
			raw, texts = o.Val, texts+1
		case requestID:
			names++
		}
	}
	switch {
	case all == 0 || all > texts+names || texts > 1 || names > 1:
		return "", false
	case texts == 0:
		return "", true
	case raw[0] != '"':
		return "", false
	}
	return rawjson.Unquote(raw), true
}

// counted is a number of things in words.
func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// brief returns an error's own words, without its cause, which is for logs.
func brief(err error) string {
	text := err.Error()
	if e, ok := errors.AsType[*agora.Error](err); ok {
		text = e.Message
	}
	head, _ := cut(text, 0, maxBrief)
	return head
}

// maxBrief bounds what an error says, in bytes: it may name what was given.
const maxBrief = 500

// advised returns an error of the cluster as a sentence that says what to do. about is what was asked for, such as
// `agent "bob"`.
func advised(about string, err error) error {
	e, ok := errors.AsType[*agora.Error](err)
	switch {
	case errors.Is(err, client.ErrUnknown):
		return fmt.Errorf("the connection was lost for so long that nobody can know whether this reached %s; ask there before you send it again, or it may arrive twice", about)
	case errors.Is(err, client.ErrClosed), errors.Is(err, client.ErrTakenOver), errors.Is(err, client.ErrKicked):
		return fmt.Errorf("the connection to the cluster has ended (%s); it is made again by itself: try again in some seconds", brief(err))
	case errors.Is(err, context.DeadlineExceeded):
		return fmt.Errorf("%s: the cluster did not answer in time: try again in some seconds", about)
	case !ok:
		return fmt.Errorf("this did not work for %s: %s", about, brief(err))
	}
	if advice := advice[e.Code]; advice != "" {
		return fmt.Errorf("%s: %s. %s", about, brief(err), advice)
	}
	return fmt.Errorf("%s: %s (%s)", about, brief(err), e.Code)
}

// advice is what to do about an error of the cluster.
var advice = map[agora.Code]string{
	agora.AgentNotFound:   "No such agent is known now: agora_who lists the ids that are.",
	agora.AgentOffline:    "It is away and has no mailbox here: try again when agora_who lists it.",
	agora.SpaceNotFound:   "No such space exists: agora_who lists the spaces that do, and agora_join makes one.",
	agora.SpaceFull:       "It takes no more members: try again later, or use another space.",
	agora.StreamAborted:   "Its sender has gone before it was whole: ask for it again.",
	agora.Forbidden:       "This agent may not do that; do not repeat it, tell the person who runs you.",
	agora.MessageTooLarge: "Send less at a time, or name a file or URL in place of its content.",
	agora.RateLimited:     "Wait some seconds, then send less often.",
	agora.Unavailable:     "It was not stored: try again in some seconds.",
	agora.Timeout:         "No answer came in time: ask agora_why, or ask again.",
	agora.InvalidRequest:  "Correct what was given and try again.",
}
