//go:build interop

// Package iat has clients of other languages speak to real edges at the IAT door, as their users would: programs in Node and Python, curl and
// nghttp. They play the same scenes, in which agents of different edges talk, and are hosts and sub-agents of each other. A
// language or a tool that is missing fails the test: scripts/interop.sh installs them.
package iat

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// scenes are what each program plays, by the names that it is told.
var scenes = []string{"register", "notify", "ask", "tools", "approval", "resume", "errors"}

// installed is where scripts/interop.sh puts libraries of other languages.
const installed = "../../bin/interop"

// start starts a cluster of three edges, and returns their URLs.
func start(t *testing.T, flags ...string) (edges []string) {
	t.Helper()
	edges = agoratest.StartDev(t, append([]string{"--edges", "3"}, flags...)...).URLs
	if len(edges) != 3 {
		t.Fatalf("agora dev has the edges %v", edges)
	}
	return edges
}

// needs returns the path of a program that has been installed.
func needs(t *testing.T, program string) string {
	t.Helper()
	path, err := exec.LookPath(program)
	if err == nil {
		path, err = filepath.Abs(path)
	}
	if err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	return path
}

// program is what runs the clients of a language: by which it is run, and what is added to its environment.
type program struct {
	argv, env []string
}

// nodeProgram returns how a client in Node is run. Its sources lie beside the libraries, so that Node finds these.
func nodeProgram(t *testing.T, flags ...string) program {
	t.Helper()
	dir := t.TempDir()
	modules, err := filepath.Abs(filepath.Join(installed, "node/node_modules"))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(filepath.Join(modules, "ws/package.json")); err != nil {
		t.Fatalf("run scripts/interop.sh first: %v", err)
	}
	if err := os.CopyFS(dir, os.DirFS("node")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(modules, filepath.Join(dir, "node_modules")); err != nil {
		t.Fatal(err)
	}
	return program{argv: append(append([]string{needs(t, "node")}, flags...), filepath.Join(dir, "run.mjs"))}
}

// pythonProgram returns how a client in Python is run.
func pythonProgram(t *testing.T) program {
	t.Helper()
	return program{
		argv: []string{needs(t, filepath.Join(installed, "venv/bin/python")), "python/run.py"}, env: []string{"PYTHONDONTWRITEBYTECODE=1"},
	}
}

// command returns a client that plays a scene by a connection, in agents whose names end in tag. It is killed with the test.
func (p program) command(ctx context.Context, connection, scene, tag string, edges []string) (cmd *exec.Cmd, said *bytes.Buffer) {
	said = new(bytes.Buffer)
	argv := append(append(append([]string{}, p.argv...), connection, scene, tag), edges...)
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), p.env...)
	cmd.Stderr = said
	return cmd, said
}

// tagOf returns what names of agents end in that are a test's own.
func tagOf(t *testing.T) string { return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) }

// plays has a client play a scene to its end.
func (p program) plays(t *testing.T, connection, scene string, edges []string) {
	t.Helper()
	cmd, said := p.command(await.Context(t), connection, scene, tagOf(t), edges)
	if err := cmd.Run(); err != nil {
		t.Errorf("%s by %s: %v\n%s", scene, connection, err, said)
	}
}

// playsAll has a client play scenes, side by side.
func (p program) playsAll(t *testing.T, connection string, scenes, edges []string) {
	t.Helper()
	for _, scene := range scenes {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			p.plays(t, connection, scene, edges)
		})
	}
}
