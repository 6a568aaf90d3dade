package agora_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// A type with more than so many methods or fields keeps what several are to keep.
const (
	mostMethods = 42
	mostFields  = 22
)

// large are the types that may have more, up to so much, each with its reason.
var large = map[string]struct {
	methods, fields int
	why             string
}{
	"wire.Frame":                   {methods: 11, fields: 64, why: "it has each field that a frame of the wire may have"},
	"client.frame":                 {methods: 6, fields: 23, why: "it has each field of the frames that the SDK reads"},
	"broker.Config":                {methods: 2, fields: 33, why: "settings are plain fields"},
	"client/aip.Config":            {methods: 2, fields: 23, why: "settings are plain fields"},
	"edge.Config":                  {methods: 1, fields: 31, why: "settings are plain fields"},
	"edge/admission.Limits":        {methods: 3, fields: 32, why: "settings are plain fields"},
	"internal/loadgen.Result":      {methods: 1, fields: 26, why: "what was measured is plain fields"},
	"internal/loadgen.StormResult": {methods: 1, fields: 24, why: "what was measured is plain fields"},
}

// TestTypesKeepFewThings holds that no type of a program has more methods or fields than a reader can keep in mind.
func TestTypesKeepFewThings(t *testing.T) {
	t.Parallel()
	types := typeSizes(t)
	for name, has := range types {
		methods, fields := mostMethods, mostFields
		if may, ok := large[name]; ok {
			methods, fields = max(methods, may.methods), max(fields, may.fields)
		}
		if has.methods > methods || has.fields > fields {
			t.Errorf("%s has %d methods and %d fields, want %d and %d at most: cut it into values that own their fields", name, has.methods, has.fields, methods, fields)
		}
	}
	for name := range large {
		if types[name] == nil {
			t.Errorf("large in types_test.go has %s, which is no type", name)
		}
	}
}

// typeSize is how much a type has.
type typeSize struct{ methods, fields int }

// typeSizes returns the types of the module by package and name, those of tests and generated ones left out.
func typeSizes(t *testing.T) map[string]*typeSize {
	t.Helper()
	types := map[string]*typeSize{}
	of := func(dir, name string) *typeSize {
		name = filepath.ToSlash(dir) + "." + name
		if types[name] == nil {
			types[name] = new(typeSize)
		}
		return types[name]
	}
	modules := []string{"bench", "interop", "helm", "release"} // what is no package of this module, or only tests
	err := filepath.WalkDir(".", func(path string, d fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case d.IsDir() && (slices.Contains(modules, path) || d.Name() == "testdata" || strings.HasPrefix(d.Name(), ".") && path != "."):
			return filepath.SkipDir
		case d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
		if err != nil || ast.IsGenerated(f) {
			return err
		}
		for _, d := range f.Decls {
			count(d, func(name string) *typeSize { return of(filepath.Dir(path), name) })
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return types
}

// count counts the methods and fields that a declaration adds to types.
func count(d ast.Decl, of func(name string) *typeSize) {
	switch d := d.(type) {
	case *ast.FuncDecl:
		if d.Recv != nil {
			of(receiver(d.Recv.List[0].Type)).methods++
		}
	case *ast.GenDecl:
		for _, s := range d.Specs {
			s, ok := s.(*ast.TypeSpec)
			if !ok {
				continue
			}
			if struc, ok := s.Type.(*ast.StructType); ok {
				for _, f := range struc.Fields.List {
					of(s.Name.Name).fields += max(1, len(f.Names))
				}
			}
		}
	}
}

// receiver returns the name of the type whose method has a receiver.
func receiver(t ast.Expr) string {
	switch t := t.(type) {
	case *ast.StarExpr:
		return receiver(t.X)
	case *ast.IndexExpr:
		return receiver(t.X)
	case *ast.IndexListExpr:
		return receiver(t.X)
	case *ast.Ident:
		return t.Name
	}
	return ""
}
