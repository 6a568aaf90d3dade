package tools

import (
	"errors"
	"strconv"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/internal/workpath"
)

// maxPaths is how many paths the arguments of one call may have, and what else stands below the name of one.
const maxPaths = 1 << 14

// CheckPaths returns nil where every path in a call's arguments lies under every root; else a *[Refusal] with FORBIDDEN
// and the place of the first that does not. Roots are absolute; empty ones don't count. Paths are the strings whose
// name is that of one, as [workpath.IsName] says, and all strings and names below such a name; those of which the
// schema says "format":"path"; and file: URLs, whatever their names. schema is the tool's, nil for none. A relative
// path is taken from each root, ".." is resolved, and a backslash ends a name as well as it is part of one. With
// resolve, links are resolved wherever the root can be seen from here, which reads the disk: then a path must also lie
// under the root that way. Anyone who opens the file must look again, as links may change. INVALID_REQUEST where
// arguments are no JSON.
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
	f := finder{found: map[*value]place{}}
	root := grow(v)
	f.named(root, "", notPath)
	if s, fault := c.schemas.compile(schema); schema != nil && fault == nil && s.plan.paths {
		f.seen = map[pair]struct{}{}
		f.declared(s, s.root, root, "")
	}
	if f.err != nil {
		return c.outside("", f.err)
	}
	steps := maxSteps
	for _, v := range f.order {
		at := f.found[v]
		err := w.hold(v.v.(string), &steps)
		if len(v.v.(string)) > workpath.Longest && !at.below { // below the name of a path there may be texts
			err = workpath.ErrNoPath
		}
		if err != nil {
			return c.outside(at.place, err)
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
	found map[*value]place
	order []*value
	seen  map[pair]struct{}
	work  int64 // spent on patterns
	err   error
}

// place is where a path stands.
type place struct {
	place string
	below bool // the name of a path, and has itself another one
}

func (f *finder) add(v *value, at string, below bool) {
	if _, known := f.found[v]; known {
		return
	}
	if len(f.order) == maxPaths {
		f.err = errTooManyPaths
		return
	}
	f.found[v] = place{at, below}
	f.order = append(f.order, v)
}

// role is what a value is by the names that lead to it.
type role uint8

const (
	notPath   role = iota
	isPath         // its name is that of a path
	belowPath      // the name of something in which it stands is
)

// named finds paths by their names.
func (f *finder) named(v *value, at string, is role) {
	switch v.v.(type) {
	case string:
		if is != notPath || workpath.IsURL(v.v.(string)) {
			f.add(v, at, is == belowPath)
		}
	case map[string]any:
		for i, name := range v.names {
			to := pointer(at, name)
			if is != notPath || workpath.IsURL(name) {
				f.add(&value{v: name}, to, true)
			}
			f.named(v.kids[i], to, is.of(name))
		}
	case []any:
		for i, kid := range v.kids {
			f.named(kid, pointer(at, strconv.Itoa(i)), is)
		}
	}
}

// of returns the role of a member of that name.
func (r role) of(name string) role {
	switch {
	case workpath.IsName(name):
		return isPath
	case r != notPath:
		return belowPath
	}
	return notPath
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
		f.add(v, at, false)
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
