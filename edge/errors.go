package edge

import "github.com/agora-relay/agora"

// code returns the code of an error; empty for none.
func code(err error) agora.Code {
	if err == nil {
		return ""
	}
	return agora.AsError(err).Code
}

// asError returns an error as agents see it; nil for nil.
func asError(err error) error {
	if err == nil {
		return nil
	}
	return agora.AsError(err)
}

func notYours(id agora.AgentID) error {
	return agora.Errorf(agora.Forbidden, "agent %q belongs to someone else", id)
}

// put puts a value into a map, which it makes where there is none.
func put[K comparable, V any](m *map[K]V, k K, v V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[k] = v
}
