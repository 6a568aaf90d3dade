package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// edit adds a value to a document of JSON: as the member at a path or, where command is set, to the list at the path.
type edit struct {
	path    []string
	value   any
	command string // by which an entry of the list is known
}

// jsonEdits are edits of one document, in their order.
type jsonEdits []edit

func (j jsonEdits) text() string {
	b, err := j.apply(nil)
	if err != nil {
		panic(err) // an empty document takes every edit
	}
	return string(b)
}

// apply keeps all other members, in their order. What it changes is indented by two spaces.
func (j jsonEdits) apply(content []byte) ([]byte, error) {
	doc := json.RawMessage(content)
	if len(bytes.TrimSpace(content)) == 0 {
		doc = json.RawMessage("{}")
	} else if !json.Valid(content) {
		return nil, errors.New("it is not valid JSON; comments are none")
	}
	was := doc
	for _, e := range j {
		var err error
		if doc, err = e.apply(doc, e.path); err != nil {
			return nil, err
		}
	}
	if len(content) > 0 && sameJSON(was, doc) {
		return content, nil
	}
	var b bytes.Buffer
	err := json.Indent(&b, doc, "", "  ")
	b.WriteByte('\n')
	return b.Bytes(), err
}

func sameJSON(a, b json.RawMessage) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}

// apply returns a value with the edit made at a path below it. nil stands for a value that is not there.
func (e edit) apply(raw json.RawMessage, path []string) (json.RawMessage, error) {
	if len(path) == 0 && e.command != "" {
		return e.appendTo(raw)
	}
	if len(path) == 0 {
		return e.set(raw)
	}
	o, err := parseObject(raw)
	if err != nil {
		return nil, fmt.Errorf("what %s stands in %w", path[0], err)
	}
	value, err := e.apply(o.get(path[0]), path[1:])
	if err != nil {
		return nil, err
	}
	return o.with(path[0], value).raw(), nil
}

func (e edit) set(raw json.RawMessage) (json.RawMessage, error) {
	want := encode(e.value)
	if raw == nil {
		return want, nil
	}
	if !covers(decode(raw), decode(want)) {
		return nil, fmt.Errorf("it has another %s; remove that first, with its hooks, or give another --name", strings.Join(e.path, "."))
	}
	return raw, nil
}

func (e edit) appendTo(raw json.RawMessage) (json.RawMessage, error) {
	var list []json.RawMessage
	if raw != nil && json.Unmarshal(raw, &list) != nil {
		return nil, fmt.Errorf("its %s is no list", strings.Join(e.path, "."))
	}
	if slices.ContainsFunc(list, func(entry json.RawMessage) bool { return runs(decode(entry), e.command) }) {
		return raw, nil
	}
	return encode(append(list, encode(e.value))), nil
}

// runs reports whether an entry of a list of hooks, or a hook within it, runs a command.
func runs(entry any, command string) bool {
	if entry == command {
		return true
	}
	o, _ := entry.(map[string]any)
	within, _ := o["hooks"].([]any)
	return o["command"] == command || slices.ContainsFunc(within, func(h any) bool { return runs(h, command) })
}

// covers reports whether a value has all that another one has. Members besides are the user's.
func covers(have, want any) bool {
	w, ok := want.(map[string]any)
	if !ok {
		return reflect.DeepEqual(have, want)
	}
	h, _ := have.(map[string]any)
	for name, value := range w {
		if there, ok := h[name]; !ok || !covers(there, value) {
			return false
		}
	}
	return true
}

// decode returns what valid JSON says.
func decode(raw json.RawMessage) (v any) {
	_ = json.Unmarshal(raw, &v)
	return v
}

// encode returns a value, of which every one can be encoded, as JSON in which no character is escaped without need.
func encode(v any) json.RawMessage {
	var b bytes.Buffer
	out := json.NewEncoder(&b)
	out.SetEscapeHTML(false)
	if err := out.Encode(v); err != nil {
		panic(err)
	}
	return bytes.TrimSpace(b.Bytes())
}
