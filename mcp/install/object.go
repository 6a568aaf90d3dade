package install

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
)

// object is a JSON object: its members in order, their values as they are spelled.
type object []member

type member struct {
	name  string
	value json.RawMessage
}

// parseObject returns the object that valid JSON is; nil is an empty one. It fails where that is no object, or a name
// stands twice in it.
func parseObject(raw json.RawMessage) (o object, err error) {
	if raw == nil {
		return nil, nil
	}
	in := json.NewDecoder(bytes.NewReader(raw))
	if t, err := in.Token(); err != nil || t != json.Delim('{') {
		return nil, errors.Join(errors.New("is no JSON object"), err)
	}
	for in.More() {
		t, err := in.Token()
		name, _ := t.(string)
		var value json.RawMessage
		if err = errors.Join(err, in.Decode(&value)); err != nil {
			return nil, err
		}
		if o.get(name) != nil {
			return nil, fmt.Errorf("has %q twice", name)
		}
		o = append(o, member{name, value})
	}
	return o, nil
}

func (o object) get(name string) json.RawMessage {
	for _, m := range o {
		if m.name == name {
			return m.value
		}
	}
	return nil
}

// with returns the object with a member, at its end if it is new.
func (o object) with(name string, value json.RawMessage) object {
	for k, m := range o {
		if m.name == name {
			o[k].value = value
			return o
		}
	}
	return append(o, member{name, value})
}

func (o object) raw() json.RawMessage {
	var b bytes.Buffer
	b.WriteByte('{')
	for k, m := range o {
		if k > 0 {
			b.WriteByte(',')
		}
		b.Write(encode(m.name))
		b.WriteByte(':')
		b.Write(m.value)
	}
	b.WriteByte('}')
	return b.Bytes()
}
