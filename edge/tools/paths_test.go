package tools

import (
	"errors"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/agora-relay/agora"
)

// outside returns the place of a FORBIDDEN refusal; ok is false where there is none.
func outside(t rapid.TB, err error) (place string, refused bool) {
	t.Helper()
	if err == nil {
		return "", false
	}
	r, ok := errors.AsType[*Refusal](err)
	if !ok || r.Err.Code != agora.Forbidden {
		t.Fatalf("error %v, want a Refusal with %s", err, agora.Forbidden)
	}
	return r.Path, true
}

var pathCases = []struct {
	roots, path string // roots with commas
	fits        bool
}{
	{"", "/etc/passwd", true},
	{"/work", "", true},
	{"/work", ".", true},
	{"/work", "a", true},
	{"/work", "./a//b/../c/", true},
	{"/work", "/work", true},
	{"/work/", "/work/", true},
	{"/work", "/work/a/b", true},
	{"/work", "//work/a", true},
	{"/work", "/work/../work/a", true},
	{"/work", "../work/a", true},
	{"/", "/etc/passwd", true},
	{"/work", "a~", true},
	{"/work", "file:///work/a%20b", true},
	{"/work", "FILE://localhost/work/a", true},
	{"/work", `a\b`, true},
	{"/a,/a/b", "/a/b/c", true},
	{"/a,/a/b", "c", true},
	{`C:\work`, `c:\work\a`, true},
	{`C:\work`, `C:/work/a`, true},
	{`C:\work`, `a\b`, true},
	{`C:\work`, `file:///c:/work/a`, true},
	{"/work", "%2e%2e/a", true}, // is a name, as it is no URL
	{"/work", "..", false},
	{"/work", "/", false},
	{"/work", "/workshop", false},
	{"/a/b", "/a/bc", false},
	{"/a/b", "../bc", false},
	{"/work", "a/../../b", false},
	{"/work", "/work/../etc", false},
	{"/work", "/../../work/../etc", false},
	{"/work", "/../work/a", false},
	{"/work", `..\..\etc`, false},
	{"/work", `a\..\..\etc`, false},
	{"/work", `a\b/../../etc`, false}, // one name and its parents, or two
	{"/work", `\etc`, false},
	{"/work", `C:\work\a`, false},
	{"/work", `C:..\a`, false},
	{"/work", `\\server\share`, false},
	{"/work", ".../a", false},
	{"/work", ".. /a", false},
	{"/x/.../work", "/x/work", false},
	{"/work", "/x/.../work/a", false},
	{"/work", "~", false},
	{"/work", "~/a", false},
	{"/work", "~root/a", false},
	{"/work", "a\x00b", false},
	{"/work", "file:///etc/passwd", false},
	{"/work", "file:///work/%2e%2e/etc", false},
	{"/work", "file:///work/..%2fetc", false},
	{"/work", "file:///work/%00", false},
	{"/work", "file://server/work/a", false},
	{"/work", "file:a", false},
	{"/work", "file:///%zz", false},
	{"/work", strings.Repeat("a/", 3000), false},
	{"/a,/b", "/a/c", false},
	{"/a/b,/a", "/a/c", false},
	{`C:\work`, `D:\work\a`, false},
	{`C:\work`, `\work\a`, false},
	{`C:\work`, `C:..\..\a`, false},
	{`C:\work`, `..\a`, false},
	{"work", "a", false}, // a root that is none
	{"~/work", "a", false},
}

func TestPathsLieUnderEveryRoot(t *testing.T) {
	for _, c := range pathCases {
		arguments := []byte(`{"path":` + quote(c.path) + `}`)
		err := New(Config{}).CheckPaths(strings.Split(c.roots, ","), nil, arguments, false)
		if _, refused := outside(t, err); refused == c.fits {
			t.Errorf("%q under %q: %v", c.path, c.roots, err)
		} else if refused && len(c.path) > 8 && strings.Contains(err.Error(), c.path) {
			t.Errorf("%q stands in the error %q", c.path, err)
		}
	}
}

// quote is a string as JSON, of names that need little.
func quote(s string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\x00", `\u0000`).Replace(s) + `"`
}

func TestPathsAreFoundByNameAndBySchema(t *testing.T) {
	const schema = `{"$defs":{"where":{"type":"string","format":"path"}},"properties":{
		"a":{"$ref":"#/$defs/where"},"b":{"items":{"$ref":"#/$defs/where"}},"c":{"properties":{"d":{"anyOf":[{"type":"null"},{"$ref":"#/$defs/where"}]}}},
		"e":{"type":"string"}},"patternProperties":{"^x-":{"format":"path"}},
		"dependentSchemas":{"e":{"properties":{"f":{"format":"path"}}}}}`
	for _, c := range []struct{ arguments, place string }{
		{`{"path":"/x"}`, "/path"},
		{`{"outputFile":"/x"}`, "/outputFile"},
		{`{"SRC_PATH":"/x"}`, "/SRC_PATH"},
		{`{"list":[{"deep":{"cwd":"/x"}}]}`, "/list/0/deep/cwd"},
		{`{"dir":["ok",["/x"]]}`, "/dir/1/0"},
		{`{"b~/dir":"/x"}`, "/b~0~1dir"},
		{`{"root":{"name":"/x","folder":"/x"}}`, "/root/folder"},
		{`{"a":"/x"}`, "/a"},
		{`{"b":["ok","/x"]}`, "/b/1"},
		{`{"c":{"d":"/x"}}`, "/c/d"},
		{`{"x-a":"/x","y-a":"/y"}`, "/x-a"},
		{`{"e":"","f":"/x"}`, "/f"},
		{`{"target":"/x","e":"/x","name":"/x","y-a":"/x","direction":"/x","empathy":"/x","profileImage":"/x","url":"https://h/../x"}`, ""},
		{`{"path":5,"file":null,"dir":true,"root":{"name":"x"},"files":{"a":[{"content":"see ../x, or so\n/ is the root"}]}}`, ""},
		{`{"paths":["a","/x"]}`, "/paths/1"}, {`{"files":["/x"]}`, "/files/0"}, {`{"file_name":"/x"}`, "/file_name"}, {`{"path":{"value":"/x"}}`, "/path/value"}, {`{"path":{"a":[{"b":"/x"}]}}`, "/path/a/0/b"},
		{`{"target-dir":"/x"}`, "/target-dir"}, {`{"SourceDirectories":["/x"]}`, "/SourceDirectories/0"}, {`{"src.path":"/x"}`, "/src.path"}, {`{"files":[{"content":"ok","target":"/x"}]}`, "/files/0/target"},
		{`{"paths":{"/x":true}}`, "/paths/~1x"}, {`{"files":{"a":"` + strings.Repeat("some text, ", 1000) + `"}}`, ""}, {`{"path":"` + strings.Repeat("a/", 3000) + `"}`, "/path"},
		{`{"uri":"file:///x"}`, "/uri"}, {`{"note":" FILE:/x"}`, "/note"}, {`{"any":[{"thing":"fi\nle:///x"}]}`, "/any/0/thing"}, {`["file:///x"]`, "/0"}, {`{"file:///x":1}`, "/file:~1~1~1x"}, {`{"uri":"file:///work/a"}`, ""},
		{`["/x"]`, ""},
		{`"/x"`, ""},
	} {
		c2 := New(Config{})
		place, refused := outside(t, c2.CheckPaths([]string{"/work"}, []byte(schema), []byte(c.arguments), false))
		if place != c.place || refused != (c.place != "") {
			t.Errorf("%s: refused %t at %q, want %q", c.arguments, refused, place, c.place)
		}
		if got := c2.Stats().Path.Load(); refused != (got == 1) {
			t.Errorf("%s: %d refused are counted", c.arguments, got)
		}
	}
	many := `{"path":["a"` + strings.Repeat(`,"a"`, maxPaths) + `]}`
	if _, refused := outside(t, New(Config{}).CheckPaths([]string{"/work"}, nil, []byte(many), false)); !refused {
		t.Error("more paths than are checked are let through")
	}
	if err := New(Config{}).CheckPaths([]string{"/work"}, nil, nil, true); err != nil {
		t.Errorf("no arguments: %v", err)
	}
}

func TestLinksAreResolvedWhereTheRootCanBeSeen(t *testing.T) {
	at := t.TempDir()
	root := filepath.Join(at, "root")
	links(t, root)
	c := New(Config{})
	for _, q := range []struct {
		path string
		fits bool
	}{
		{"in/file", true}, {"self/in/file", true}, {"in/file/below", true}, {"new/deep/er", true}, {root + "/self/in", true},
		{"out", false}, {"out/secret", false}, {"out/new", false}, {"dangling", false}, {"dangling/x", false}, {"in/up/../secret", false},
		{"chain/secret", false}, {"loop/x", false}, {"self/out/secret", false}, {"out/../root/in", true}, {at + "/alias/in", true},
	} {
		err := c.CheckPaths([]string{root}, nil, []byte(`{"path":`+quote(q.path)+`}`), true)
		if q.path == at+"/alias/in" {
			q.fits = false // as it is spelled, it is elsewhere
		}
		if _, refused := outside(t, err); refused == q.fits {
			t.Errorf("%q: %v", q.path, err)
		}
	}
	if _, refused := outside(t, c.CheckPaths([]string{root}, nil, []byte(`{"path":"out/secret"}`), false)); refused {
		t.Error("links are resolved though nobody wants it")
	}
	if _, refused := outside(t, c.CheckPaths([]string{at + "/nowhere"}, nil, []byte(`{"path":"a/b"}`), true)); refused {
		t.Error("a root that can't be seen from here is not checked as it is spelled")
	}
	if _, refused := outside(t, c.CheckPaths([]string{at + "/alias"}, nil, []byte(`{"path":"in/file"}`), true)); refused {
		t.Error("a root that is itself a link holds nothing")
	}
}

// links makes a tree with links that lead out of root, around and to nowhere.
func links(t testing.TB, root string) {
	t.Helper()
	if runtime.GOOS == "windows" {
		t.Fatal("the edge resolves links on systems that have them for everybody")
	}
	above := filepath.Dir(root)
	err := errors.Join(
		os.MkdirAll(root+"/in", 0o755), os.WriteFile(root+"/in/file", nil, 0o644),
		os.MkdirAll(above+"/other", 0o755), os.WriteFile(above+"/other/secret", nil, 0o644), os.WriteFile(above+"/secret", nil, 0o644),
		os.Symlink(root, above+"/alias"), os.Symlink(".", root+"/self"), os.Symlink("../other", root+"/out"), os.Symlink("../../other", root+"/in/up"),
		os.Symlink(above+"/none", root+"/dangling"), os.Symlink("out", root+"/chain"), os.Symlink("loop", root+"/loop"),
	)
	if err != nil {
		t.Fatal(err)
	}
}

// TestWhatIsLetThroughOpensInsideTheRoot has random paths opened by the system itself, which is the reference.
func TestWhatIsLetThroughOpensInsideTheRoot(t *testing.T) {
	at, err := filepath.EvalSymlinks(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := at + "/root"
	links(t, root)
	c := New(Config{})
	names := []string{"in", "file", "self", "out", "up", "secret", "dangling", "chain", "loop", "other", "root", "..", ".", "", "new", "alias", `in\..`, "...", "~"}
	inside := func(p string) bool { return p == root || strings.HasPrefix(p, root+"/") }
	rapid.Check(t, func(t *rapid.T) {
		path := strings.Join(rapid.SliceOfN(rapid.SampledFrom(names), 1, 8).Draw(t, "names"), "/")
		switch rapid.IntRange(0, 3).Draw(t, "from") {
		case 0:
			path = root + "/" + path
		case 1:
			path = at + "/" + path
		}
		_, refused := outside(t, c.CheckPaths([]string{root}, nil, []byte(`{"path":`+quote(path)+`}`), true))
		for _, spelled := range []string{path, filepath.Clean(path)} {
			full := spelled
			if !strings.HasPrefix(spelled, "/") {
				full = root + "/" + spelled
			}
			real, err := filepath.EvalSymlinks(full) // which the system could open
			if err == nil && !inside(real) && !refused {
				t.Fatalf("%q is let through, and is %q", path, real)
			}
		}
	})
}
