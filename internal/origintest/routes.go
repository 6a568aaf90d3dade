package origintest

import (
	"net/http"
	"reflect"
	"slices"
	"strings"
	"testing"
)

// Routes returns the patterns of a mux, sorted. It reads them where net/http keeps them, as that lists them nowhere: so
// a new route is tested by the one who adds it.
func Routes(t testing.TB, mux *http.ServeMux) []string {
	t.Helper()
	found := map[string]bool{}
	note := func(patterns reflect.Value) {
		for k := range patterns.Len() {
			found[patterns.Index(k).Elem().FieldByName("str").String()] = true
		}
	}
	index := reflect.ValueOf(mux).Elem().FieldByName("index")
	for all := index.FieldByName("segments").MapRange(); all.Next(); {
		note(all.Value())
	}
	note(index.FieldByName("multis"))
	var patterns []string
	for p := range found {
		patterns = append(patterns, p)
	}
	slices.Sort(patterns)
	return patterns
}

// methods are tried where a pattern names none.
var methods = []string{"GET", "HEAD", "POST", "PUT", "DELETE", "OPTIONS"}

// Requests returns what can be asked by a pattern: its path, with a name for each of its parts that may be anything, by
// its method or by all.
func Requests(pattern string) (all []Request) {
	method, path, named := strings.Cut(pattern, " ")
	tries := []string{method}
	if !named {
		path, tries = pattern, methods
	}
	parts := strings.Split(path, "/")
	for k, part := range parts {
		switch {
		case part == "{$}":
			parts[k] = ""
		case strings.HasPrefix(part, "{"):
			parts[k] = "bob"
		}
	}
	target := strings.Join(parts, "/")
	if strings.HasSuffix(path, "/") && path != "/" {
		target += "nothing"
	}
	for _, method := range tries {
		all = append(all, Request{Method: method, Target: target})
	}
	return all
}
