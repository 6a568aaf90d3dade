package agora_test

import (
	"go/token"
	"os"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/tools/go/callgraph"
	"golang.org/x/tools/go/callgraph/cha"
	"golang.org/x/tools/go/callgraph/vta"
	gopackages "golang.org/x/tools/go/packages"
	"golang.org/x/tools/go/ssa"
	"golang.org/x/tools/go/ssa/ssautil"
)

// mostSteps is how many files a walk passes at most: a newcomer can read so many in a morning.
const mostSteps = 20

// TestTheWalksOfTheArchitectureAreWalked holds that each file that a walk of ARCHITECTURE.md names is there and is called by a file
// before it. A walk is a section "## The walk of …" whose numbered items begin with a file, in backticks. A line of text between
// two items begins a new leg, whose first file is called by what the text says: a socket, or the log.
func TestTheWalksOfTheArchitectureAreWalked(t *testing.T) {
	t.Parallel()
	walks := readWalks(t)
	if len(walks) != 2 {
		t.Fatalf("ARCHITECTURE.md has %d walks, want 2: of a send and of a space.publish", len(walks))
	}
	for _, w := range walks {
		w.judge(t)
	}
	if t.Failed() {
		return // what is missing can't be analysed
	}
	g := callsOf(t, walks)
	for _, w := range walks {
		w.follow(t, g)
	}
}

// walk is one of the walks of ARCHITECTURE.md.
type walk struct {
	title string
	steps []step
}

// step is an item of a walk.
type step struct {
	file   string
	begins bool // a leg
}

var (
	walkTitle = regexp.MustCompile(`(?m)^## (The walk of .*)$`)
	stepLine  = regexp.MustCompile("^([0-9]+)\\. `([^`]+)`")
)

// readWalks reads the walks, in their order.
func readWalks(t *testing.T) (all []walk) {
	t.Helper()
	for _, section := range strings.Split(page(t, "ARCHITECTURE.md"), "\n## ") {
		title := walkTitle.FindStringSubmatch("## " + section)
		if title == nil {
			continue
		}
		w := walk{title: title[1]}
		begins := true
		for line := range strings.Lines(section) {
			m := stepLine.FindStringSubmatch(line)
			switch {
			case m != nil:
				w.steps = append(w.steps, step{m[2], begins})
				if n, _ := strconv.Atoi(m[1]); n != len(w.steps) {
					t.Errorf("ARCHITECTURE.md, %s: `%s` has the number %d, want %d", w.title, m[2], n, len(w.steps))
				}
				begins = false
			case line != "\n" && !strings.HasPrefix(line, " "):
				begins = true
			}
		}
		all = append(all, w)
	}
	return all
}

// judge holds that a walk is short, has two legs, and names files that are there.
func (w walk) judge(t *testing.T) {
	t.Helper()
	if n := len(w.steps); n > mostSteps {
		t.Errorf("ARCHITECTURE.md, %s: it passes %d files, want at most %d: merge two that have one duty", w.title, n, mostSteps)
	}
	legs := 0
	for k, s := range w.steps {
		if s.begins {
			legs++
		}
		if _, err := os.Stat(s.file); err != nil {
			t.Errorf("ARCHITECTURE.md, %s, item %d: there is no %s. Where it was renamed or merged, name the file that has its functions now", w.title, k+1, s.file)
		}
	}
	if legs != 2 {
		t.Errorf("ARCHITECTURE.md, %s: it has %d legs, want 2: to the log, and from it", w.title, legs)
	}
}

// follow holds that each file is called by one before it.
func (w walk) follow(t *testing.T, g callers) {
	t.Helper()
	for k, s := range w.steps {
		before := func(file string) bool {
			return slices.ContainsFunc(w.steps[:k], func(b step) bool { return b.file == file })
		}
		if s.begins || slices.ContainsFunc(g[s.file], before) {
			continue
		}
		t.Errorf("ARCHITECTURE.md, %s, item %d: no function of a file before it calls one of %s, which these call: %s. "+
			"Put one of them before it, move the item, or take it out where the walk no longer passes it",
			w.title, k+1, s.file, strings.Join(g[s.file], ", "))
	}
}

// callers are, by file, the files whose functions call one of its functions: directly, by an interface, or by a function value.
type callers map[string][]string

// callsOf finds the callers within the packages of all walks.
func callsOf(t *testing.T, walks []walk) callers {
	t.Helper()
	var dirs []string
	for _, w := range walks {
		for _, s := range w.steps {
			dirs = append(dirs, "./"+path.Dir(s.file))
		}
	}
	slices.Sort(dirs)
	fset := token.NewFileSet()
	cfg := &gopackages.Config{Fset: fset, Mode: gopackages.NeedName | gopackages.NeedFiles | gopackages.NeedCompiledGoFiles |
		gopackages.NeedImports | gopackages.NeedTypes | gopackages.NeedTypesSizes | gopackages.NeedSyntax | gopackages.NeedTypesInfo}
	loaded, err := gopackages.Load(cfg, slices.Compact(dirs)...)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range loaded {
		for _, err := range p.Errors {
			t.Fatal(err)
		}
	}
	program, _ := ssautil.Packages(loaded, ssa.InstantiateGenerics)
	program.Build()
	graph := vta.CallGraph(ssautil.AllFunctions(program), cha.CallGraph(program))
	f := files{fset: fset, root: workingDir(t)}
	g := callers{}
	for fn, node := range graph.Nodes {
		if fn == nil || fn.Synthetic != "" {
			continue
		}
		f.addCallees(g, f.of(fn), node, map[*callgraph.Node]bool{})
	}
	for file := range g {
		slices.Sort(g[file])
	}
	return g
}

func workingDir(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

// files knows in which file a function is.
type files struct {
	fset *token.FileSet
	root string
}

func (f files) of(fn *ssa.Function) string {
	name, err := filepath.Rel(f.root, f.fset.Position(fn.Pos()).Filename)
	if err != nil {
		return ""
	}
	return filepath.ToSlash(name)
}

// addCallees notes a file as a caller of the files of what a function calls. What the compiler makes of a method value, or of an
// embedded method, stands for the method.
func (f files) addCallees(g callers, file string, node *callgraph.Node, made map[*callgraph.Node]bool) {
	for _, e := range node.Out {
		callee := e.Callee.Func
		if callee.Synthetic == "" || callee.Origin() != nil {
			if to := f.of(callee); to != file && !slices.Contains(g[to], file) {
				g[to] = append(g[to], file)
			}
		} else if !made[e.Callee] {
			made[e.Callee] = true
			f.addCallees(g, file, e.Callee, made)
		}
	}
}
