package tools

import (
	"errors"
	"strconv"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agora-relay/agora"
)

// maxPaths is how many paths the arguments of one call may have.
const maxPaths = 4096

// pathNames are the ends of names whose arguments are paths.
var pathNames = []string{"path", "file", "filename", "dir", "directory", "folder", "root", "cwd"}

// isPathName reports whether an argument of this name is a path.
func isPathName(name string) bool {
	name = strings.ToLower(name)
	for _, end := range pathNames {
		if strings.HasSuffix(name, end) {
			return true
		}
	}
	return false
}

// CheckPaths returns nil where every path in a call's arguments lies under every root; else a *[Refusal] with FORBIDDEN and the place of the first that does not.
// Roots are absolute; empty ones don't count. Paths are the strings, and those in lists, whose name ends in path, file, filename, dir,
// directory, folder, root or cwd in any case, and those of which the schema says "format":"path"; schema is the tool's, nil for none. A relative path is taken
// from each root, ".." is resolved, and a backslash ends a name as well as it is part of one. With resolve, links are resolved wherever the root can be seen from here, which reads the
// disk: then a path must also lie under the root that way. Who opens the file must look again, as links may change. INVALID_REQUEST where arguments are no JSON.
func (c *Checker) CheckPaths(roots []string, schema, arguments []byte, resolve bool) error {
	w, err := newWorkspaces(roots, resolve)
	if err != nil {
		return c.outside("", err)
	}
	if len(w) == 0 || arguments == nil {
		return nil
	}
	v, r := parseArguments(arguments)
	if r != nil {
		c.count.Schema.Add(1)
		return r
	}
	f := finder{found: map[*value]string{}}
	root := grow(v)
	f.named(root, "", false)
	if s, fault := c.schemas.compile(schema); schema != nil && fault == nil && s.plan.paths {
		f.seen = map[pair]struct{}{}
		f.declared(s, s.root, root, "")
	}
	if f.err != nil {
		return c.outside("", f.err)
	}
	steps := maxSteps
	for _, found := range f.order {
		if err := w.hold(found.v.(string), &steps); err != nil {
			return c.outside(f.found[found], err)
		}
	}
	return nil
}

// outside counts and returns the refusal for a path.
func (c *Checker) outside(at string, err error) error {
	c.count.Path.Add(1)
	return refuse(agora.Forbidden, at, "%s", err)
}

var errTooManyPaths = errors.New("more paths than are checked in one call")

// finder looks for paths in arguments.
type finder struct {
	found map[*value]string // where they stand
	order []*value
	seen  map[pair]struct{}
	work  int64 // spent on patterns
	err   error
}

func (f *finder) add(v *value, at string) {
	if _, known := f.found[v]; known {
		return
	}
	if len(f.order) == maxPaths {
		f.err = errTooManyPaths
		return
	}
	f.found[v] = at
	f.order = append(f.order, v)
}

// named finds paths by their names; is says that v stands under such a one.
func (f *finder) named(v *value, at string, is bool) {
	switch v.v.(type) {
	case string:
		if is {
			f.add(v, at)
		}
	case map[string]any:
		for i, name := range v.names {
			f.named(v.kids[i], pointer(at, name), isPathName(name))
		}
	case []any:
		for i, kid := range v.kids {
			f.named(kid, pointer(at, strconv.Itoa(i)), is)
		}
	}
}

// declared finds paths by what the schema says of them.
func (f *finder) declared(in *Schema, s *jsonschema.Schema, v *value, at string) {
	p := pair{s, v}
	if _, ok := f.seen[p]; ok || f.err != nil {
		return
	}
	if f.seen[p] = struct{}{}; len(f.seen) > budget/8 {
		f.err = errTooManyPaths
		return
	}
	if _, is := v.v.(string); is && in.plan.parts[s].path {
		f.add(v, at)
	}
	for _, name := range v.names {
		f.work += in.plan.parts[s].patterns * int64(len(name)+16) / 16
	}
	if f.work > budget {
		f.err = errTooManyPaths
		return
	}
	in.plan.each(s, v, true, func(next *jsonschema.Schema, kid *value, token string) bool {
		if kid == v {
			f.declared(in, next, v, at)
		} else {
			f.declared(in, next, kid, pointer(at, token))
		}
		return f.err == nil
	})
}
