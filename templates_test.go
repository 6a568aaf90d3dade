package agora_test

import (
	"encoding/json"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// setsTemplate is what makes cobra use templates, which it has but does without.
var setsTemplate = regexp.MustCompile(`\.Set(Usage|Help|Version)Template\(`)

// TestNoTemplateGetsIntoAProgramOfARelease holds what keeps it small: a template calls methods by names that are known
// only when it runs, so the linker keeps every exported method of a program that can run one, which is a fifth of all.
// The tag is that of deploy/Dockerfile.
func TestNoTemplateGetsIntoAProgramOfARelease(t *testing.T) {
	out, err := exec.Command("go", "list", "-deps", "-tags", "grpcnotrace", "-json=ImportPath,Imports", "./cmd/agora").Output()
	if err != nil {
		t.Fatal(err)
	}
	for d := json.NewDecoder(strings.NewReader(string(out))); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		for _, path := range p.Imports {
			if strings.HasSuffix(path, "/template") && p.ImportPath != "github.com/spf13/cobra" {
				t.Errorf("%s imports %s", p.ImportPath, path)
			}
		}
	}
	err = filepath.WalkDir("cmd", func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") {
			return err
		}
		text, err := os.ReadFile(path)
		if what := setsTemplate.Find(text); what != nil {
			t.Errorf("%s has %s: write the text in Go", path, what)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
}
