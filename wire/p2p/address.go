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
	toolsPath  = "/tools/"
	agentsPath = "/agents/"
)

// Tool returns the call of a tool that a request is whose path is /tools/{name}: the tool's name, and its arguments, which are input_data or else params; nil for none. params are
// no arguments where the path has taken the name from them. input_data that is a string stands for the JSON object that is its text, if it is one: there are callers whose input_data
// is a string always. Any method will do. called is false for a request of another path; an error is a [Fault] of the number 400.
func (r *Request) Tool() (name string, arguments json.RawMessage, called bool, err error) {
	segment, called := strings.CutPrefix(r.Path, toolsPath)
	if !called || segment == "" || strings.ContainsAny(segment, "/?#") {
		return "", nil, false, nil
	}
	name, filled, err := r.name(segment)
	if err != nil {
		return "", nil, true, err
	}
	arguments = r.Params
	switch {
	case r.Input != nil:
		arguments = objectOf(r.Input)
	case filled:
		arguments = nil
	}
	return name, arguments, true, nil
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
