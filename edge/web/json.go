package web

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"unicode/utf8"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/rawjson"
)

// jsonTypes are the media types of bodies that are JSON. curl says the second where nothing else was said, of any body.
var jsonTypes = []string{"application/json", "application/x-www-form-urlencoded"}

// JSON reads a body that is one JSON value: UTF-8, not nested too deeply, no key twice in one object. It returns the
// bytes as they came.
func (x *Exchange) JSON() ([]byte, error) {
	b, err := x.Body(jsonTypes...)
	if err != nil {
		return nil, err
	}
	return b, checkJSON(b, x.kit.cfg.Depth)
}

// Decode reads a body that is one JSON object into a struct. Fields that the struct does not have are refused, so that
// none that is misspelt is passed over.
func (x *Exchange) Decode(into any) error {
	b, err := x.JSON()
	if err != nil {
		return err
	}
	return Decode(b, into)
}

// Decode is [Exchange.Decode] of a body that was read by JSON.
func Decode(b []byte, into any) error {
	if b = bytes.TrimLeft(b, " \t\r\n"); b[0] != '{' {
		return agora.Errorf(agora.InvalidRequest, "the body must be a JSON object")
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(b, &fields); err != nil {
		return agora.Errorf(agora.InvalidRequest, "the body is no JSON object")
	}
	for key := range fields {
		if !has(into, key) {
			return agora.Errorf(agora.InvalidRequest, "%q is no field of this request", clipped(key))
		}
	}
	err := json.Unmarshal(b, into)
	if wrong, ok := errors.AsType[*json.UnmarshalTypeError](err); ok {
		return agora.Errorf(agora.InvalidRequest, "%q can't be a %s", clipped(wrong.Field), wrong.Value)
	}
	if err != nil {
		return &agora.Error{Code: agora.InvalidRequest, Message: "the body has a value that can't be read", Cause: err}
	}
	return nil
}

// has reports whether a struct has a field of exactly that name; encoding/json takes other capitals for the same.
func has(into any, key string) bool {
	t := reflect.TypeOf(into)
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t.Kind() != reflect.Struct {
		return true
	}
	for _, f := range reflect.VisibleFields(t) {
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.IsExported() && (name == key || name == "" && !f.Anonymous && f.Name == key) {
			return true
		}
	}
	return false
}

// clipped returns the beginning of a name, as much as an error may quote.
func clipped(name string) string {
	const most = 64
	if len(name) <= most {
		return name
	}
	return strings.ToValidUTF8(name[:most], "") + "…"
}

// checkJSON returns what is wrong with a JSON value; nil when nothing is.
func checkJSON(b []byte, depth int) error {
	if at := badUTF8(b); at >= 0 {
		return agora.Errorf(agora.InvalidRequest, "the body is no UTF-8 at byte %d", at)
	}
	if rawjson.Deeper(b, depth) {
		return agora.Errorf(agora.InvalidRequest, "the body is nested more than %d deep", depth)
	}
	if err := json.Unmarshal(b, new(json.RawMessage)); err != nil {
		if wrong, ok := errors.AsType[*json.SyntaxError](err); ok {
			return agora.Errorf(agora.InvalidRequest, "the body is no JSON at byte %d", wrong.Offset)
		}
		return agora.Errorf(agora.InvalidRequest, "the body is no JSON")
	}
	if key, twice := repeated(b); twice {
		return agora.Errorf(agora.InvalidRequest, "%q stands twice in one object", clipped(key))
	}
	return nil
}

func badUTF8(b []byte) int {
	for at := 0; at < len(b); {
		r, n := utf8.DecodeRune(b[at:])
		if r == utf8.RuneError && n == 1 {
			return at
		}
		at += n
	}
	return -1
}

// repeated returns a key that stands twice in one object of a value that is JSON.
func repeated(b []byte) (string, bool) {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var open []keys
	for {
		t, err := d.Token()
		if err != nil {
			return "", false // its end
		}
		var in *keys
		if len(open) > 0 {
			in = &open[len(open)-1]
		}
		switch t {
		case json.Delim('{'), json.Delim('['):
			if in != nil {
				in.value()
			}
			open = append(open, keys{object: t == json.Delim('{')})
			continue
		case json.Delim('}'), json.Delim(']'):
			open = open[:len(open)-1]
			continue
		}
		if in == nil {
			continue
		}
		if key, ok := t.(string); ok && in.object && !in.named {
			if !in.add(key) {
				return key, true
			}
			continue
		}
		in.value()
	}
}

// keys are those of an object that is being read, or an array without any.
type keys struct {
	object bool
	named  bool // the next token is a value
	few    []string
	many   map[string]struct{} // once there are more than a few
}

func (k *keys) value() { k.named = false }

// add takes a key; false if it was there.
func (k *keys) add(key string) bool {
	const few = 16
	k.named = true
	if k.many == nil {
		for _, was := range k.few {
			if was == key {
				return false
			}
		}
		if k.few = append(k.few, key); len(k.few) <= few {
			return true
		}
		k.many = make(map[string]struct{}, 2*few)
		for _, was := range k.few {
			k.many[was] = struct{}{}
		}
		return true
	}
	_, was := k.many[key]
	k.many[key] = struct{}{}
	return !was
}
