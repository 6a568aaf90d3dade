package agora_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// logRow is a row of the table of log messages: message and level.
var logRow = regexp.MustCompile("(?m)^\\| `([^`]+)` \\| (debug|info|warn|error) \\|")

// levels are the methods of a slog.Logger that log, with the argument that is the message.
var levels = map[string]int{"Debug": 0, "Info": 0, "Warn": 0, "Error": 0, "DebugContext": 1, "LogAttrs": 2}

func TestOperatorsFindEveryLogMessageInTheTable(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("docs/logs.md")
	if err != nil {
		t.Fatal(err)
	}
	told := map[string]string{}
	for _, row := range logRow.FindAllStringSubmatch(string(page), -1) {
		told[row[1]] = row[2]
	}
	said := map[string]string{}
	for _, dir := range []string{"broker", "cmd/agora", "edge", "internal/reload", "internal/trace", "mcp", "presence", "sidecar", "spaces"} {
		maps.Copy(said, logged(t, dir))
	}
	for _, message := range slices.Sorted(maps.Keys(said)) {
		if told[message] != said[message] {
			t.Errorf("docs/logs.md lacks the row | `%s` | %s | …", message, said[message])
		}
		delete(told, message)
	}
	for message := range told {
		t.Errorf("docs/logs.md has a row for %q, which nothing logs", message)
	}
}

// logged returns the level of every message that a folder's programs log.
func logged(t *testing.T, dir string) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		f, err := parser.ParseFile(token.NewFileSet(), path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(f, func(n ast.Node) bool {
			if message, level, ok := logCall(n); ok {
				all[message] = level
			}
			return true
		})
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

// logCall takes apart a call of a logger's method.
func logCall(n ast.Node) (message, level string, ok bool) {
	call, _ := n.(*ast.CallExpr)
	if call == nil {
		return "", "", false
	}
	method, _ := call.Fun.(*ast.SelectorExpr)
	if method == nil {
		return "", "", false
	}
	at, known := levels[method.Sel.Name]
	if !known || !strings.HasSuffix(strings.ToLower(lastName(method.X)), "log") || len(call.Args) <= at {
		return "", "", false
	}
	text, _ := call.Args[at].(*ast.BasicLit)
	if text == nil || text.Kind != token.STRING {
		return "", "", false
	}
	message, err := strconv.Unquote(text.Value)
	level = strings.ToLower(strings.TrimSuffix(method.Sel.Name, "Context"))
	if at == 2 {
		level = strings.ToLower(strings.TrimPrefix(lastName(call.Args[1]), "Level"))
	}
	return message, level, err == nil
}

// lastName returns the last name of x.y.z.
func lastName(x ast.Expr) string {
	switch x := x.(type) {
	case *ast.Ident:
		return x.Name
	case *ast.SelectorExpr:
		return x.Sel.Name
	}
	return ""
}
