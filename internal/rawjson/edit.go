package rawjson

import "bytes"

// edited is how deeply the values of an object may stand in each other that is edited: as deeply as anything decodes them.
const edited = 10000

// Member returns the last value of a key of valid JSON, nil where that is no object or has no such key.
func Member(object []byte, key string) (value []byte) {
	for o := NewObject(object, edited); o.Next(); {
		if string(o.Name()) == key {
			value = o.Val
		}
	}
	return value
}

// With returns a valid object with one more member at its end. Every other byte stays as it is.
func With(object []byte, key string, value []byte) []byte {
	head := bytes.TrimRight(object, " \t\r\n")
	head = bytes.TrimRight(head[:len(head)-1], " \t\r\n")
	out := make([]byte, 0, len(head)+len(key)+len(value)+8)
	if out = append(out, head...); head[len(head)-1] != '{' {
		out = append(out, ',')
	}
	out = append(AppendString(out, key), ':')
	return append(append(out, value...), '}')
}

// Without returns a valid object without the members that have one of the keys. Those that stay keep their bytes and their order.
func Without(object []byte, keys ...string) []byte {
	out := []byte{'{'}
	for o := NewObject(object, edited); o.Next(); {
		if named(keys, o.Name()) {
			continue
		}
		if len(out) > 1 {
			out = append(out, ',')
		}
		out = append(out, o.b[o.KeyAt:o.ValAt+len(o.Val)]...)
	}
	return append(out, '}')
}

func named(keys []string, name []byte) bool {
	for _, key := range keys {
		if key == string(name) {
			return true
		}
	}
	return false
}
