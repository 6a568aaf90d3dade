package p2p

import (
	"encoding/json"
	"net/http"
	"net/url"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// Paths that have a meaning in a cluster, whatever agent they are handed to. A name in them may be escaped, slashes included, or be a parameter.
const (
	toolsName  = "tools"
	agentsPath = "/agents/"
)

// Tool returns the call of a tool that a request is whose path is /tools/{name}: the tool's name, and its arguments, which are input_data or else params; nil for none. params are
// no arguments where the path has taken the name from them. input_data that is a string stands for the JSON object that is its text, if it is one: there are callers whose input_data
// is a string always. Any method will do, and any spelling that a server may take for the path: with escapes, parameters, dots, several slashes, one behind the name, "tools" in any case. called is
// false for a request of another path; an error is a [Fault] of the number 400: the name is none, or a query or a fragment follows it.
func (r *Request) Tool() (name string, arguments json.RawMessage, called bool, err error) {
	path, more := r.Path, ""
	if i := strings.IndexAny(path, "?#"); i >= 0 {
		path, more = path[:i], path[i:]
	}
	s, called := r.tool(path)
	switch {
	case !called:
		return "", nil, false, nil
	case s.err != nil:
		return "", nil, true, s.err
	case more != "":
		return "", nil, true, malformed("the path of a tool has a query or a fragment: its arguments are input_data or params")
	}
	arguments = r.Params
	switch {
	case r.Input != nil:
		arguments = objectOf(r.Input)
	case s.filled:
		arguments = nil
	}
	return s.name, arguments, true, nil
}

// step is a segment of a path: what it stands for, or why it is no name.
type step struct {
	name   string
	filled bool // by a parameter
	err    error
}

// tool returns the segment that names the tool whose path a path is; false for another path.
func (r *Request) tool(path string) (of step, called bool) {
	var at []step
	for segment := range strings.SplitSeq(path, "/") {
		if segment == "" {
			continue
		}
		var s step
		s.name, s.filled, s.err = r.name(segment)
		switch {
		case s.name == ".":
		case s.name == ".." && len(at) > 0:
			at = at[:len(at)-1]
		case s.name != "..":
			at = append(at, s)
		}
	}
	if len(at) == 1 { // a server may undo escapes before it takes a path apart
		first, rest, _ := strings.Cut(at[0].name, "/")
		of, at[0].name = at[0], first
		of.name = strings.Trim(rest, "/")
		return of, strings.EqualFold(first, toolsName) && of.name != ""
	}
	if len(at) != 2 || !strings.EqualFold(strings.Trim(at[0].name, "/"), toolsName) {
		return of, false
	}
	of = at[1]
	of.filled = of.filled || at[0].filled
	return of, true
}

// objectOf returns the object whose text input_data is, else input_data.
func objectOf(input json.RawMessage) json.RawMessage {
	if input[0] != '"' || rawjson.Halved(input) {
		return input
	}
	text := []byte(rawjson.Unquote(input))
	o := rawjson.NewObject(text, maxDepth)
	for o.Next() {
	}
	if !o.End() {
		return input
	}
	return text
}

// Target returns for whom a request is that was handed to the cluster itself, whose path is /agents/{id}/…, and the request for that agent, whose path is what follows: at least a
// slash. A [Fault]: 404 for a path that names no agent, 400 for an id that is none.
func (r *Request) Target() (agora.AgentID, Request, error) {
	rest, ok := strings.CutPrefix(r.Path, agentsPath)
	end := strings.IndexAny(rest, "/?#")
	if end < 0 {
		end = len(rest)
	}
	if !ok || end == 0 {
		return "", Request{}, NewFault(http.StatusNotFound, "the path must begin with %s and the id of an agent", agentsPath)
	}
	name, _, err := r.name(rest[:end])
	if err != nil {
		return "", Request{}, err
	}
	id, err := agora.ParseAgentID(name)
	if err != nil {
		return "", Request{}, malformed("%s", agora.AsError(err).Message)
	}
	inner := *r
	inner.Path = "/" + strings.TrimLeft(rest[end:], "/")
	return id, inner, nil
}

// name returns the name that a segment is, and whether a parameter has filled it.
func (r *Request) name(segment string) (name string, filled bool, err error) {
	if strings.ContainsAny(segment, "{}") {
		name, err = r.fillName(segment)
		return name, true, err
	}
	name, err = url.PathUnescape(segment)
	if err != nil || !utf8.ValidString(name) || strings.ContainsFunc(name, unicode.IsControl) {
		return "", false, malformed("path has a segment that is no name")
	}
	return name, false, nil
}

// fillName returns the name that a segment with parameters is.
func (r *Request) fillName(segment string) (string, error) {
	p, err := parsePattern(segment, false)
	if err != nil {
		return "", err
	}
	asked := path{segments: []pattern{p}}
	values, err := asked.values(r.Params)
	if err != nil {
		return "", err
	}
	var name strings.Builder
	for _, piece := range p {
		name.WriteString(piece.text)
		name.WriteString(values[piece.name])
	}
	if s := name.String(); s != "" && !strings.ContainsFunc(s, unicode.IsControl) {
		return s, nil
	}
	return "", malformed("path has a segment that is no name")
}
