package wire

import (
	"cmp"
	"encoding/json"
	"fmt"
	"strconv"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// set reads one field's value, valid JSON, into the frame. It returns what is
// wrong with it, "" when nothing is.
func (d *decoder) set(f field, raw []byte) string {
	switch fields[f].kind {
	case kText:
		return d.setText(f, raw, d.limits.Name)
	case kLongText:
		return d.setText(f, raw, max(d.limits.Name, maxLongText))
	case kToken:
		return d.setText(f, raw, maxToken)
	case kPath:
		return d.setText(f, raw, maxPath)
	case kCode:
		return d.setCode(f, raw)
	case kAgentID:
		what := d.setText(f, raw, d.limits.Name)
		if what == "" && d.strict {
			what = agentID(*d.frame.text(f))
		}
		return what
	case kBool:
		return setBool(d.frame.flag(f), raw)
	case kNumber:
		return d.setNumber(f, raw)
	case kMillis:
		n, what := integer(raw, fields[f].min, agora.MaxSeq)
		*d.frame.millis(f) = int64(n)
		return what
	case kIndex:
		n, what := integer(raw, 0, 1<<32)
		d.frame.Index, d.frame.HasIndex = uint32(n), true
		return what
	case kCount:
		n, what := integer(raw, 0, 1<<31)
		d.frame.History = int(n)
		return what
	case kSeconds:
		return setSeconds(&d.frame.HeartbeatInterval, raw)
	case kAny:
		*d.frame.bytes(f) = raw
		return ""
	case kString, kObject:
		return setRaw(d.frame.bytes(f), raw, fields[f].kind)
	}
	return d.setNested(f, raw)
}

func (d *decoder) setText(f field, raw []byte, max int) string {
	p := d.frame.text(f)
	text, what := readText(raw, cmp.Or(*p, d.old.of(f)), max) // identify has read the id already
	if what == "" {
		*p = text
	}
	return what
}

// readText reads a string of at most so many runes; it is old itself where it is the same.
func readText(raw []byte, old string, max int) (text, what string) {
	if raw[0] != '"' {
		return "", "must be a string"
	}
	text, whole := rawjson.Text(raw, old)
	if !whole {
		return "", rawjson.HalfPair
	}
	return text, bounded(text, max)
}

func (d *decoder) setCode(f field, raw []byte) string {
	if d.frame.Type != "handoff.result" {
		return d.setText(f, raw, d.limits.Name)
	}
	n, what := integer(raw, 100, 1000)
	d.frame.StatusCode = int(n)
	return what
}

func (d *decoder) setNumber(f field, raw []byte) string {
	n, what := integer(raw, fields[f].min, agora.MaxSeq)
	*d.frame.number(f) = n
	if f == fLastSeq {
		d.frame.HasLastSeq = true
	}
	return what
}

// of returns the kept string of a field, "" where none is kept.
func (k *kept) of(f field) string {
	switch f {
	case fTo:
		return k.to
	case fFrom:
		return k.from
	case fStreamID:
		return k.stream
	case fSpace:
		return k.space
	case fEventID:
		return k.event
	case fSession:
		return k.session
	}
	return ""
}

func bounded(s string, max int) string {
	if len(s) > max && utf8.RuneCountInString(s) > max {
		return fmt.Sprintf("is longer than %d characters", max)
	}
	return ""
}

// agentID says what is wrong with an agent id. Nearly all are of printable ASCII, which it tells at a glance.
func agentID(s string) string {
	plain := s != "" && len(s) <= agora.MaxIDLength && s[0] != ' ' && s[len(s)-1] != ' '
	for i := 0; plain && i < len(s); i++ {
		plain = 0x20 <= s[i] && s[i] <= 0x7e
	}
	if plain {
		return ""
	}
	if _, err := agora.ParseAgentID(s); err != nil {
		return "is no agent id: " + agora.AsError(err).Message
	}
	return ""
}

// ownID is agentID for the id that an agent gives itself.
func ownID(s string) string {
	if _, err := agora.ParseOwnID(s); err != nil {
		return "is no agent id: " + agora.AsError(err).Message
	}
	return ""
}

func setBool(p *bool, raw []byte) string {
	if raw[0] != 't' && raw[0] != 'f' {
		return "must be true or false"
	}
	*p = raw[0] == 't'
	return ""
}

func setRaw(p *json.RawMessage, raw []byte, k kind) string {
	switch {
	case k == kString && raw[0] != '"':
		return "must be a string"
	case k == kObject && raw[0] != '{':
		return "must be an object"
	}
	*p = raw
	return ""
}

func setSeconds(p *float64, raw []byte) string {
	n, err := strconv.ParseFloat(string(raw), 64)
	if err != nil {
		return "must be a number"
	}
	*p = n
	return ""
}

// integer reads an integer, written with digits alone, from min to below the bound.
func integer(raw []byte, min, below uint64) (n uint64, what string) {
	n, ok := rawjson.Integer(raw, min, below)
	if !ok {
		return 0, fmt.Sprintf("must be an integer from %d to %d", min, below-1)
	}
	return n, ""
}

// isTraceparent reports whether a text is a traceparent of W3C Trace Context: a version, the id of a trace, that of a
// span, and flags, in lower-case hex, with dashes between. Later versions may have more behind that.
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
