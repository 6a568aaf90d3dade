package p2p

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// usual are the methods of a skill that names none.
var usual = []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete}

// Guard says which requests reach an agent: those for a path of a skill of its card, by a method of that, and GET /card. It may be used by several
// goroutines at the same time once Slashes is set.
type Guard struct {
	// Slashes lets values of parameters of a path have slashes, sent as %2F. It is for agents whose server takes a path apart before it undoes escapes, as Go's does.
	// To one that does so afterwards, as most of Python do, such a value would be several segments, and might be a path that no skill has.
	Slashes bool

	routes []route
}

// route is a path of a card, and the methods by which it is asked.
type route struct {
	path    path
	methods []string
}

// NewGuard returns the guard of a card's skills. A skill without a path can't be asked this way. One whose path or methods are none can't either, and the error
// names each such; the guard of the others is there nonetheless.
func NewGuard(skills []Skill) (*Guard, error) {
	card := path{segments: []pattern{{{text: "card", spelt: "card"}}}}
	g := &Guard{routes: []route{{card, []string{http.MethodGet}}}}
	var bad []error
	for _, s := range skills {
		if s.Path == "" {
			continue
		}
		r, err := newRoute(s)
		if err != nil {
			bad = append(bad, fmt.Errorf("skill %q: %w", s.Name, err))
			continue
		}
		g.routes = append(g.routes, r)
	}
	return g, errors.Join(bad...)
}

func newRoute(s Skill) (r route, err error) {
	if r.path, err = parsePath(s.Path); err != nil {
		return r, err
	}
	for _, m := range s.Methods {
		method, err := ParseMethod(m)
		if err != nil {
			return r, err
		}
		if method == http.MethodConnect || method == http.MethodTrace {
			return r, malformed("method %s is never passed on", method)
		}
		r.methods = append(r.methods, method)
	}
	if len(r.methods) == 0 {
		r.methods = usual
	}
	return r, nil
}

// Check returns what a request asks of the agent. Its path is compared with those of the skills before it is filled, segment by segment: each is the same text, or the
// same text with parameters, which the request's params fill; or it is filled already, and what stands where the skill has parameters are their values. What is sent is made of
// the skill's path, and of values with every sign escaped that has a meaning; params that the path has no place for are left alone.
//
// Errors are a [Fault]: 404 for a path that no skill has, 405 for another method than its skills', 400 for what is no path, for a parameter that is missing or is neither string nor
// number nor true nor false, and for a value that would be read as more than that: in a segment an empty one, dots, slashes, backslashes, and anywhere control characters.
func (g *Guard) Check(r *Request) (Target, error) {
	asked, err := parsePath(r.Path)
	if err != nil {
		return Target{}, err
	}
	route, err := g.route(&asked, r.Method)
	if err != nil {
		return Target{}, err
	}
	f := filler{asked: &asked, slashes: g.Slashes}
	if f.values, err = asked.values(r.Params); err != nil {
		return Target{}, err
	}
	t, err := f.fill(&route.path)
	if err != nil {
		return Target{}, err
	}
	t.Method = r.Method
	if !t.holds(&route.path, g.Slashes) {
		return Target{}, malformed("path is not what it seems")
	}
	return t, nil
}

// route finds the first route that has a path and a method.
func (g *Guard) route(asked *path, method string) (*route, error) {
	there := false
	for i := range g.routes {
		r := &g.routes[i]
		if !r.path.has(asked) {
			continue
		}
		if slices.Contains(r.methods, method) {
			return r, nil
		}
		there = true
	}
	if there {
		return nil, NewFault(http.StatusMethodNotAllowed, "the agent has no skill that takes %s at this path", method)
	}
	return nil, NewFault(http.StatusNotFound, "the agent has no skill with this path")
}
