package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
)

// target is a platform that the program is built for.
type target struct{ os, arch string }

func (t target) String() string { return t.os + "/" + t.arch }

// program is what the program's file is called.
func (t target) program() string {
	if t.os == "windows" {
		return "agora.exe"
	}
	return "agora"
}

const allTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

// parseTargets reads a list of platforms. At least one is of Linux: the image is made of those.
func parseTargets(list string) ([]target, error) {
	var all []target
	for name := range strings.SplitSeq(list, ",") {
		system, arch, _ := strings.Cut(name, "/")
		t := target{system, arch}
		if !slices.Contains(strings.Split(allTargets, ","), name) || slices.Contains(all, t) {
			return nil, fmt.Errorf("target %q: want different ones of %s", name, allTargets)
		}
		all = append(all, t)
	}
	if !slices.ContainsFunc(all, func(t target) bool { return t.os == "linux" }) {
		return nil, fmt.Errorf("targets %s: none is of Linux, which the image is made of", list)
	}
	return all, nil
}

// buildFlags are those of deploy/Dockerfile, which has the same program built: a test compares the two.
func buildFlags(version string) []string {
	return []string{
		"-trimpath", "-buildvcs=false", "-tags=grpcnotrace",
		"-ldflags=-s -w -buildid= -X github.com/agora-relay/agora/cmd/agora/version.release=" + version,
	}
}

// largest is how large a program may be: what is larger has got a dependency that is not worth it, or links templates
// again (see docs/releasing.md).
const largest = 55_000_000

// compile builds the program for a platform, static and stripped, and returns its path.
func (r *release) compile(ctx context.Context, t target, work string) (string, error) {
	path := filepath.Join(work, t.os+"-"+t.arch, t.program())
	cmd := exec.CommandContext(ctx, "go", slices.Concat([]string{"build"}, buildFlags(r.version), []string{"-o", path, "./cmd/agora"})...)
	cmd.Dir, cmd.Stdout, cmd.Stderr = r.root, r.log, r.log
	// The Go of go.mod and no other, as another one makes other bytes; and nothing that the caller's environment
	// changes about the code.
	toolchain, err := r.toolchain()
	if err != nil {
		return "", err
	}
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS="+t.os, "GOARCH="+t.arch, "GOAMD64=v1", "GOARM64=v8.0", "GOFLAGS=-mod=readonly", "GOEXPERIMENT=", "GOTOOLCHAIN="+toolchain)
	if r.cache != "" {
		cmd.Env = append(cmd.Env, "GOCACHE="+r.cache)
	}
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("go build for %s: %w", t, err)
	}
	info, err := os.Stat(path)
	if err == nil && info.Size() > largest {
		err = fmt.Errorf("the program for %s has %d bytes, want at most %d", t, info.Size(), largest)
	}
	return path, err
}

// goLine is the line of go.mod that says which Go it is for.
var goLine = regexp.MustCompile(`(?m)^go (\S+)$`)

// toolchain returns the name of the Go that the source names.
func (r *release) toolchain() (string, error) {
	mod, err := os.ReadFile(filepath.Join(r.root, "go.mod"))
	if err != nil {
		return "", err
	}
	line := goLine.FindSubmatch(mod)
	if line == nil {
		return "", fmt.Errorf("%s/go.mod has no line of Go's version", r.root)
	}
	return "go" + string(line[1]), nil
}

// shells are those that have completions, with the names of their files where packagers put them.
var shells = []struct{ shell, file string }{
	{"bash", "agora.bash"}, {"zsh", "_agora"}, {"fish", "agora.fish"}, {"powershell", "agora.ps1"},
}

// completions has the program write what completes it in each shell. It runs that of this machine, which is built for
// that where it is none of the release's.
func (r *release) completions(ctx context.Context, programs map[target]string, work string) ([]entry, error) {
	host := target{runtime.GOOS, runtime.GOARCH}
	program := programs[host]
	if program == "" {
		var err error
		if program, err = r.compile(ctx, host, work); err != nil {
			return nil, err
		}
	}
	var all []entry
	for _, s := range shells {
		var out bytes.Buffer
		cmd := exec.CommandContext(ctx, program, "completion", s.shell)
		cmd.Stdout, cmd.Stderr = &out, r.log
		if err := cmd.Run(); err != nil {
			return nil, fmt.Errorf("agora completion %s: %w", s.shell, err)
		}
		all = append(all, entry{name: "completions/" + s.file, mode: 0o644, content: out.Bytes()})
	}
	return all, nil
}
