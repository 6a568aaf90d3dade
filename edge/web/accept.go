package web

import (
	"mime"
	"strconv"
	"strings"
)

// WantsEvents reports whether the request would rather have server-sent events than JSON (RFC 9110 §12.5.1): its Accept
// names them, or texts of any kind, and prefers no JSON to them.
func (x *Exchange) WantsEvents() bool {
	ranges := mediaRanges(x.Request.Header.Values("Accept"))
	events, named := quality(ranges, "text", "event-stream")
	json, _ := quality(ranges, "application", "json")
	return events > json || named && events > 0 && events == json
}

// mediaRange is an element of Accept.
type mediaRange struct {
	kind, of string  // "*" for any
	exact    int     // parameters beside the weight
	q        float64 // 0 to 1
}

// mediaRanges reads the fields of Accept. What can't be read is passed over.
func mediaRanges(fields []string) []mediaRange {
	var all []mediaRange
	for _, field := range fields {
		for len(field) > 0 {
			var one string
			one, field = cutElement(field)
			media, params, err := mime.ParseMediaType(one)
			kind, of, ok := strings.Cut(media, "/")
			if err != nil || !ok {
				continue
			}
			delete(params, "charset") // UTF-8 is all there is
			r := mediaRange{kind: kind, of: of, q: 1, exact: len(params)}
			if q, weighed := params["q"]; weighed {
				r.exact--
				if r.q, err = strconv.ParseFloat(q, 64); err != nil || !(r.q >= 0 && r.q <= 1) {
					continue
				}
			}
			all = append(all, r)
		}
	}
	return all
}

// cutElement cuts a list of HTTP behind its first element. Commas in quoted strings are part of it.
func cutElement(list string) (first, rest string) {
	quoted := false
	for i := 0; i < len(list); i++ {
		switch c := list[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case c == ',' && !quoted:
			return list[:i], list[i+1:]
		}
	}
	return list, ""
}

// quality returns the weight that ranges give a media type without parameters, by the most specific of them, and
// whether that names its kind.
func quality(ranges []mediaRange, kind, of string) (q float64, named bool) {
	best := -1
	for _, r := range ranges {
		specific := 0
		switch {
		case r.exact > 0: // one with parameters is another type
			continue
		case r.kind == kind && r.of == of:
			specific = 2
		case r.kind == kind && r.of == "*":
			specific = 1
		case r.kind != "*" || r.of != "*":
			continue
		}
		if specific > best {
			best, q = specific, r.q
		}
	}
	return q, best > 0
}
