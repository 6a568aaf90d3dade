//go:build interop

// Package aip has foreign programs speak to real edges at the AIP door, with the proto alone, as their users would:
// programs in Node and Python, grpcurl and ghz. They play the same scenes, at different edges, with nodes of each other
// and of client/aip. A language or a tool that is missing fails the test: scripts/interop.sh installs them.
package aip

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"go.uber.org/goleak"

	"github.com/agora-relay/agora/internal/agoratest"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// installed is where scripts/interop.sh puts what it installs.
const installed = "../../bin/interop"

// protoFile is what all of them know of Agora.
const protoFile = "../../wire/aip/aip.proto"

// start starts a cluster of three edges.
func start(t *testing.T, flags ...string) *agoratest.DevProcess {
	t.Helper()
	c := agoratest.StartDev(t, append([]string{"--edges", "3"}, flags...)...)
	if len(c.GRPC) != 3 {
		t.Fatalf("agora dev has the edges %v", c.GRPC)
	}
	return c
}

// absolute returns the path of what has been installed, from the root of the file system.
func absolute(t testing.TB, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err == nil {
		_, err = os.Stat(path)
	}
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	return path
}

// needs returns the path of a program that has been installed.
func needs(t testing.TB, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	return absolute(t, path)
}

// program is what runs the scenes of a language: by which it is run, and what is added to its environment.
type program struct {
	language  string
	argv, env []string
}

// nodeProgram returns how scenes in Node are run. Its sources lie beside the libraries, so that Node finds these. It
// loads the proto when it starts.
func nodeProgram(t *testing.T) program {
	t.Helper()
	dir := t.TempDir()
	modules := absolute(t, filepath.Join(installed, "aip/node/node_modules"))
	absolute(t, filepath.Join(modules, "@grpc/grpc-js/package.json"))
	if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return program{language: "node", argv: []string{needs(t, "node"), filepath.Join(dir, "run.mjs")}, env: []string{"AIP_PROTO=" + absolute(t, protoFile)}}
}

// pythonProgram returns how scenes in Python are run. Its stubs are generated from the proto.
func pythonProgram(t *testing.T) program {
	t.Helper()
	python, generated := absolute(t, filepath.Join(installed, "aip/venv/bin/python")), t.TempDir()
	out, err := exec.CommandContext(t.Context(), python, "-m", "grpc_tools.protoc", "-I", filepath.Dir(absolute(t, protoFile)), "--python_out", generated, "--grpc_python_out", generated, filepath.Base(protoFile)).CombinedOutput()
	if err != nil {
		t.Fatalf("generate stubs: %v\n%s", err, out)
	}
	return program{language: "python", argv: []string{python, absolute(t, "python/run.py")}, env: []string{"PYTHONDONTWRITEBYTECODE=1", "PYTHONPATH=" + generated}}
}

// command returns the program as it plays scenes with nodes whose ids end in tag, against those of a peer. It is killed
// with ctx.
func (p program) command(ctx context.Context, scenes, tag, peer string, edges []string) (cmd *exec.Cmd, said *bytes.Buffer) {
	said = new(bytes.Buffer)
	argv := slices.Concat(p.argv, []string{scenes, tag, peer}, edges)
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stderr = said
	return cmd, said
}

// tagOf returns what ids of nodes end in that are a test's own.
func tagOf(t testing.TB) string {
	return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name())
}

// plays has the program play scenes, one after the other, to their end.
func (p program) plays(ctx context.Context, t *testing.T, peer string, edges []string, scenes ...string) {
	t.Helper()
	cmd, said := p.command(ctx, strings.Join(scenes, ","), tagOf(t), peer, edges)
	if err := cmd.Run(); err != nil {
		t.Errorf("%s in %s: %v\n%s", scenes, p.language, err, said)
	}
}
