//go:build interop

// Package asyncapi has AsyncAPI's own parser read the document that an edge shows.
package asyncapi

import (
	"bytes"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
)

// installed is where scripts/interop.sh puts the parser.
const installed = "../../bin/interop/asyncapi/node/node_modules"

func TestTheParserFindsNothingWrong(t *testing.T) {
	edge := agoratest.StartDev(t).URLs[0]
	r, err := http.Get(edge + "/asyncapi.json")
	if err != nil {
		t.Fatal(err)
	}
	defer r.Body.Close()
	doc, err := io.ReadAll(r.Body)
	if err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s, %v", r.Status, err)
	}
	modules, err := filepath.Abs(installed)
	if err == nil {
		_, err = os.Stat(filepath.Join(modules, "@asyncapi/parser"))
	}
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	dir := t.TempDir() // sources lie beside the libraries, so that Node finds these
	if err := os.CopyFS(dir, os.DirFS(".")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "node", filepath.Join(dir, "parse.mjs"))
	cmd.Stdin = bytes.NewReader(doc)
	out, err := cmd.CombinedOutput()
	if err != nil || !strings.HasPrefix(string(out), "3.0.0 ") {
		t.Fatalf("%v: %.3000s", err, out)
	}
}
