package p2p

import (
	"bytes"
	"encoding/json"
	"net/http"
	"strings"

	"github.com/agora-relay/agora/internal/rawjson"
	"github.com/agora-relay/agora/wire"
)

// maxMethod bounds the letters of a method.
const maxMethod = 16

// Request is a request that is handed off.
type Request struct {
	Method string          // letters, in upper case
	Path   string          // begins with one slash; else as it was written, with {name} for a parameter
	Params json.RawMessage // an object; nil for none
	Input  json.RawMessage // any JSON but null; nil for none
}

// Decode returns the request that a JSON object is; a [Fault] of the number 400 that says what is wrong with it. Members that it does not know are left alone. The
// request keeps slices of b, which is not changed.
func Decode(b []byte) (Request, error) { return decode(b, "") }

// FromPayload is [Decode] for a payload of the action "handoff": see [Request.AppendPayload].
func FromPayload(payload []byte) (Request, error) { return decode(payload, "handoff") }

// decode decodes a request, as the payload of an action where that is not empty.
func decode(b []byte, action string) (Request, error) {
	var m members
	if err := m.read(b); err != nil {
		return Request{}, err
	}
	if action != "" {
		if s, err := m.text("action", m.action); err != nil {
			return Request{}, err
		} else if s != action {
			return Request{}, malformed("action must be %q", action)
		}
	}
	return m.request()
}

// Append appends the request as it is written to a stream. params and input_data keep their bytes.
func (r *Request) Append(dst []byte) []byte {
	dst = rawjson.AppendString(append(dst, `{"method":`...), r.Method)
	dst = rawjson.AppendString(append(dst, `,"path":`...), r.Path)
	if r.Params != nil {
		dst = append(append(dst, `,"params":`...), r.Params...)
	}
	if r.Input != nil {
		dst = append(append(dst, `,"input_data":`...), r.Input...)
	}
	return append(dst, '}')
}

// AppendPayload appends the request as agents of other dialects are told it: the payload of the action "handoff". requestID may be empty, and is left out then.
func (r *Request) AppendPayload(dst []byte, requestID string) []byte {
	return wire.AppendHandoff(dst, requestID, r.Method, r.Path, r.Params, r.Input)
}

// Body returns what an HTTP request has as its body, and its Content-Type; nil and "" for none. It is input_data as it was written; where rawString is set, and
// input_data is a string, its text, in which half a surrogate pair is U+FFFD.
func (r *Request) Body(rawString bool) (body []byte, contentType string) {
	switch {
	case r.Input == nil:
		return nil, ""
	case rawString && r.Input[0] == '"':
		return []byte(rawjson.Unquote(r.Input)), "text/plain; charset=utf-8"
	}
	return r.Input, "application/json"
}

// members are the raw values of a request's members, nil where they are absent.
type members struct {
	action, method, path, params, input []byte
}

// read reads the members of an object and checks all of it.
func (m *members) read(b []byte) error {
	if at := rawjson.BadUTF8(b); at >= 0 {
		return malformed("the request is not valid UTF-8 at byte %d", at)
	}
	o := rawjson.NewObject(b, maxDepth)
	for o.Next() {
		into := m.member(o.Name())
		if into == nil {
			continue
		}
		if *into != nil {
			return malformed("%s stands twice", o.Name())
		}
		*into = o.Val
	}
	if !o.End() {
		what, at := o.Fault()
		return malformed("the request is no JSON object: at byte %d, %s", at, what)
	}
	return nil
}

func (m *members) member(name []byte) *[]byte {
	switch string(name) {
	case "action":
		return &m.action
	case "method":
		return &m.method
	case "path":
		return &m.path
	case "params":
		return &m.params
	case "input_data":
		return &m.input
	}
	return nil
}

func (m *members) request() (r Request, err error) {
	method, err := m.text("method", m.method)
	if err != nil {
		return r, err
	}
	if r.Method, err = ParseMethod(method); err != nil {
		return r, err
	}
	path, err := m.text("path", m.path)
	if err != nil {
		return r, err
	}
	if len(path) > MaxPath {
		return r, malformed("path is longer than %d bytes", MaxPath)
	}
	r.Path = "/" + strings.TrimLeft(path, "/")
	r.Params, r.Input = present(m.params), present(m.input)
	if r.Params != nil && r.Params[0] != '{' {
		return r, malformed("params must be an object")
	}
	return r, nil
}

// text reads a string that has to be there.
func (m *members) text(name string, raw []byte) (string, error) {
	switch {
	case raw == nil:
		return "", malformed("%s is missing", name)
	case raw[0] != '"':
		return "", malformed("%s must be a string", name)
	case rawjson.Halved(raw):
		return "", malformed("%s %s", name, rawjson.HalfPair)
	}
	return rawjson.Unquote(raw), nil
}

// present returns a value, nil where it is absent or null.
func present(raw []byte) json.RawMessage {
	if bytes.Equal(raw, []byte("null")) {
		return nil
	}
	return raw
}

// ParseMethod returns a method in upper case; a [Fault] of the number 400 where it is no word.
func ParseMethod(s string) (string, error) {
	if s == "" || len(s) > maxMethod {
		return "", malformed("method must be a word such as %s", http.MethodGet)
	}
	for i := range len(s) {
		if c := s[i] | 0x20; c < 'a' || c > 'z' {
			return "", malformed("method must be a word such as %s", http.MethodGet)
		}
	}
	return strings.ToUpper(s), nil
}
