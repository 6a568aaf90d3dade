//go:build interop

// Package iat has clients of other languages speak to real edges at the IAT door, as their users would: programs in
// Node and Python, curl and nghttp. They play the same scenes, in which agents of different edges talk, and are hosts
// and sub-agents of each other. A language or a tool that is missing fails the test: scripts/interop.sh installs them.
package iat

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/agora-relay/agora/internal/agoratest"
	"github.com/agora-relay/agora/internal/await"
)

// scenes are what each program plays, by the names that it is told.
var scenes = []string{"register", "notify", "ask", "tools", "approval", "resume", "errors"}

// installed is where scripts/interop.sh puts libraries of other languages.
const installed = "../../bin/interop/iat"

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
	return program{argv: slices.Concat([]string{needs(t, "node")}, flags, []string{filepath.Join(dir, "run.mjs")})}
}

// pythonProgram returns how a client in Python is run.
func pythonProgram(t *testing.T) program {
	t.Helper()
	return program{
		argv: []string{needs(t, filepath.Join(installed, "venv/bin/python")), "python/run.py"}, env: []string{"PYTHONDONTWRITEBYTECODE=1"},
	}
}

// by returns the clients of a language that connect in one way.
func (p program) by(connection string) client { return client{p, connection} }

// client is a client, and how it connects.
type client struct {
	program
	connection string
}

// command returns the client as it plays a scene with agents whose names end in tag. It is killed with ctx.
func (c client) command(ctx context.Context, scene, tag string, edges []string) (cmd *exec.Cmd, said *bytes.Buffer) {
	said = new(bytes.Buffer)
	argv := slices.Concat(c.argv, []string{c.connection, scene, tag}, edges)
	cmd = exec.CommandContext(ctx, argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), c.env...)
	cmd.Stderr = said
	return cmd, said
}

// tagOf returns what names of agents end in that are a test's own.
func tagOf(t *testing.T) string { return strings.NewReplacer("/", "-", " ", "-").Replace(t.Name()) }

// plays has the client play a scene to its end, and reports whether that went well.
func (c client) plays(ctx context.Context, t *testing.T, scene string, edges []string) bool {
	t.Helper()
	cmd, said := c.command(ctx, scene, tagOf(t), edges)
	err := cmd.Run()
	if err != nil {
		t.Errorf("%s by %s: %v\n%s", scene, c.connection, err, said)
	}
	return err == nil
}

// playsAll has the client play scenes, side by side.
func (c client) playsAll(t *testing.T, scenes, edges []string) {
	t.Helper()
	for _, scene := range scenes {
		t.Run(scene, func(t *testing.T) {
			t.Parallel()
			c.plays(await.Context(t), t, scene, edges)
		})
	}
}
