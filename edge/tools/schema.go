// Package tools is what an edge knows of the tools that agents declare: whether their schemas are such, whether a
// call's arguments fit, whether its caller may make it, whether the paths in it lie in the workspace, and which tools
// there are.
package tools

import (
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/agora-relay/agora"
)

// Schema is a JSON Schema 2020-12 that arguments are checked against. It does not change; many goroutines may use it.
type Schema struct {
	root *jsonschema.Schema
	plan *plan
	size int // bytes that it came in
}

// home is where a schema is said to lie. Nothing is ever loaded from there.
const home = "agora://tool/schema"

// MaxSchema is how many bytes a schema may have where nothing else is set.
const MaxSchema = 64 << 10

// Compile returns a schema that may be used. Else its error is an INVALID_REQUEST [agora.Error] that names the place in
// the schema. It is judged as JSON Schema 2020-12 whatever draft it names; format says something, and is not asserted;
// pattern is in the syntax of RE2. What lies outside of the schema is never looked for. A schema that is larger than
// [MaxSchema], deeper than [agora.MaxSchemaDepth], or refers to itself without getting on in the value is refused. It
// does not block; a large schema takes some tens of milliseconds.
func Compile(schema []byte) (*Schema, error) {
	s, fault := compile(schema, MaxSchema)
	if fault != nil {
		return nil, agora.Errorf(agora.InvalidRequest, "schema%s", fault)
	}
	return s, nil
}

// fault is what is wrong with a schema, at a place in it.
type fault struct{ place, why string }

// String returns the fault as the end of a sentence that begins with what is at fault.
func (f *fault) String() string {
	if f.place == "" {
		return ": " + f.why
	}
	return " at " + clip(f.place) + ": " + f.why
}

func compile(schema []byte, most int) (s *Schema, f *fault) {
	defer func() {
		if recover() != nil { // the library's, which an input no one thought of has found
			s, f = nil, &fault{"", "can't be used"}
		}
	}()
	if len(schema) > most {
		return nil, &fault{"", fmt.Sprintf("larger than %d bytes", most)}
	}
	doc, r := parse(schema, agora.MaxSchemaDepth)
	if r != nil {
		return nil, &fault{r.Path, strings.TrimPrefix(r.Err.Message, "at "+clip(r.Path)+": ")}
	}
	switch doc.(type) {
	case map[string]any, bool:
	default:
		return nil, &fault{"", "must be an object, true or false"}
	}
	survey := newSurvey()
	if f := survey.schema("", doc, true); f != nil {
		return nil, f
	}
	root, err := survey.compiler(doc).Compile(home)
	if err != nil {
		return nil, survey.explain(err)
	}
	plan, f := newPlan(root, doc)
	if f != nil {
		return nil, f
	}
	return &Schema{root, plan, len(schema)}, nil
}

// compiler returns the library's compiler, which loads nothing.
func (s *survey) compiler(doc any) *jsonschema.Compiler {
	c := jsonschema.NewCompiler()
	c.DefaultDraft(jsonschema.Draft2020)
	c.UseLoader(nowhere{})
	c.UseRegexpEngine(s.patterns.engine)
	_ = c.AddResource(home, doc) // there is none else in a new compiler
	return c
}

// nowhere loads nothing.
type nowhere struct{}

func (nowhere) Load(string) (any, error) {
	return nil, errors.New("nothing outside of a schema is read")
}

// explain says what the library found wrong with a schema.
func (s *survey) explain(err error) *fault {
	if e, ok := errors.AsType[*jsonschema.SchemaValidationError](err); ok {
		if v, ok := errors.AsType[*jsonschema.ValidationError](e.Err); ok {
			l := firstLeaf(v)
			return &fault{placeOf(e.URL) + l.at, l.why}
		}
	}
	if e, ok := errors.AsType[*jsonschema.LoadURLError](err); ok {
		return s.outside(e.URL)
	}
	if e, ok := errors.AsType[*jsonschema.JSONPointerNotFoundError](err); ok {
		return s.dangling(placeOf(e.URL))
	}
	if e, ok := errors.AsType[*jsonschema.AnchorNotFoundError](err); ok {
		_, anchor, _ := strings.Cut(e.Reference, "#")
		return s.dangling(anchor)
	}
	if e, ok := errors.AsType[*jsonschema.InvalidRegexError](err); ok {
		return &fault{placeOf(e.URL), notPattern}
	}
	if e, ok := errors.AsType[*jsonschema.DuplicateAnchorError](err); ok {
		return &fault{max(e.Ptr1, e.Ptr2), "this anchor stands twice"}
	}
	if e, ok := errors.AsType[*jsonschema.DuplicateIDError](err); ok {
		return &fault{max(e.Ptr1, e.Ptr2), "this $id stands twice"}
	}
	return &fault{s.firstRef(func(string) bool { return true }), "a name or reference in it is not a URI"}
}

// outside says which reference leads to a URL.
func (s *survey) outside(to string) *fault {
	place := s.firstRef(func(ref string) bool {
		doc, _, _ := strings.Cut(ref, "#")
		return doc != "" && strings.HasSuffix(to, strings.TrimLeft(doc, "./"))
	})
	return &fault{place, "refers to something outside of the schema"}
}

// dangling says which reference leads to a place that is not there.
func (s *survey) dangling(to string) *fault {
	place := s.firstRef(func(ref string) bool {
		_, fragment, _ := strings.Cut(ref, "#")
		f, err := url.PathUnescape(fragment)
		return err == nil && f != "" && strings.HasSuffix(to, f)
	})
	return &fault{place, "refers to a place that is not in the schema"}
}

// firstRef returns the place of the first reference that is meant; "" where none is.
func (s *survey) firstRef(meant func(ref string) bool) string {
	i := slices.IndexFunc(s.refs, func(r reference) bool { return meant(r.to) })
	if i < 0 {
		return ""
	}
	return s.refs[i].place
}

// placeOf returns the JSON pointer of a location in a schema.
func placeOf(location string) string {
	_, fragment, _ := strings.Cut(location, "#")
	p, err := url.PathUnescape(fragment)
	if err != nil {
		return fragment
	}
	return p
}
