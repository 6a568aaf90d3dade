// Command release builds all that a release of Agora consists of: archives of the static program for each platform,
// with the completions of shells, their SBOMs, an image for several architectures, the Helm chart, and checksums of all
// of them. The same source gives the same bytes. It is a module of its own, so that nothing it needs gets into Agora.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"time"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// semver is a version as tags have it.
var semver = regexp.MustCompile(`^v(0|[1-9]\d*)\.(0|[1-9]\d*)\.(0|[1-9]\d*)(-[0-9A-Za-z-]+(\.[0-9A-Za-z-]+)*)?$`)

// release is one release that is being built.
type release struct {
	root     string    // of the repository
	out      string    // where everything goes
	version  string    // v1.2.3
	revision string    // of the source; empty where that is not known
	time     time.Time // of everything that has one: when the revision was committed
	targets  []target
	cache    string // of what is compiled into programs; Go's own if empty
	log      io.Writer
}

// run builds the release that the arguments ask for.
func run(ctx context.Context, args []string, log io.Writer) error {
	flags := flag.NewFlagSet("release", flag.ContinueOnError)
	r := release{log: log}
	flags.StringVar(&r.root, "root", "..", "`folder` of the source")
	flags.StringVar(&r.out, "out", "", "`folder` to build in, new or empty; required")
	flags.StringVar(&r.version, "version", "", "`version`, such as v1.2.3; required")
	flags.StringVar(&r.cache, "cache", "", "`folder` of the cache for what programs are compiled of; Go's own if empty")
	targets := flags.String("targets", allTargets, "`platforms`, separated by commas; the image has those of Linux")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if !semver.MatchString(r.version) {
		return fmt.Errorf("version %q: want one such as v1.2.3 or v1.2.3-rc.1", r.version)
	}
	var err error
	if r.targets, err = parseTargets(*targets); err != nil {
		return err
	}
	if r.root, err = filepath.Abs(r.root); err != nil {
		return err
	}
	if r.out, err = emptyFolder(r.out); err != nil {
		return err
	}
	if err := r.date(ctx); err != nil {
		return err
	}
	work, err := os.MkdirTemp("", "agora-release-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(work)
	return r.build(ctx, work)
}

// emptyFolder makes a folder, or finds it empty, and returns its absolute path.
func emptyFolder(path string) (string, error) {
	if path == "" {
		return "", errors.New("-out is missing")
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(path, 0o755); err != nil {
		return "", err
	}
	there, err := os.ReadDir(path)
	if err == nil && len(there) > 0 {
		err = fmt.Errorf("%s is not empty", path)
	}
	return path, err
}

// date finds out which revision is built, and when it was committed; SOURCE_DATE_EPOCH goes first, as source without
// its history says neither.
func (r *release) date(ctx context.Context) error {
	out, gitErr := exec.CommandContext(ctx, "git", "-C", r.root, "log", "-1", "--format=%H %ct").Output()
	revision, seconds, _ := strings.Cut(strings.TrimSpace(string(out)), " ")
	r.revision = revision
	if epoch := os.Getenv("SOURCE_DATE_EPOCH"); epoch != "" {
		seconds = epoch
	} else if gitErr != nil {
		return fmt.Errorf("%s is no clone of the repository: say when it was committed by SOURCE_DATE_EPOCH", r.root)
	}
	n, err := strconv.ParseInt(seconds, 10, 64)
	if err != nil {
		return fmt.Errorf("SOURCE_DATE_EPOCH: %w", err)
	}
	r.time = time.Unix(n, 0).UTC()
	if changed, err := exec.CommandContext(ctx, "git", "-C", r.root, "status", "--porcelain").Output(); err == nil && len(changed) > 0 {
		fmt.Fprintln(r.log, "the source has changes that are not committed: this is not to be published")
	}
	return nil
}

// build builds everything. work is a folder for what is needed meanwhile.
func (r *release) build(ctx context.Context, work string) error {
	programs := map[target]string{}
	for _, t := range r.targets {
		r.say("the program for %s", t)
		path, err := r.compile(ctx, t, work)
		if err != nil {
			return err
		}
		programs[t] = path
	}
	shells, err := r.completions(ctx, programs, work)
	if err != nil {
		return err
	}
	if err := r.assemble(programs, shells); err != nil {
		return err
	}
	r.say("the chart")
	if err := r.chart(ctx); err != nil {
		return err
	}
	return checksums(r.out)
}

// assemble makes archives, SBOMs and the image of programs that were built.
func (r *release) assemble(programs map[target]string, shells []entry) error {
	for _, t := range r.targets {
		r.say("archive and SBOM for %s", t)
		if err := r.archive(t, programs[t], shells); err != nil {
			return err
		}
		if err := r.sbom(t, programs[t]); err != nil {
			return err
		}
	}
	r.say("the image")
	return r.image(programs)
}

// chart packs the Helm chart. The module of its tests has the library for that.
func (r *release) chart(ctx context.Context) error {
	cmd := exec.CommandContext(ctx, "go", "run", "./pack", "-version", strings.TrimPrefix(r.version, "v"), "-time", strconv.FormatInt(r.time.Unix(), 10), "-out", r.out)
	cmd.Dir, cmd.Stdout, cmd.Stderr = filepath.Join(r.root, "helm", "check"), r.log, r.log
	return cmd.Run()
}

// name returns the name of a file of the release.
func (r *release) name(t target, suffix string) string {
	return fmt.Sprintf("agora-%s-%s-%s%s", r.version, t.os, t.arch, suffix)
}

// write writes a file of the release.
func (r *release) write(name string, content []byte) error {
	return os.WriteFile(filepath.Join(r.out, name), content, 0o644)
}

func (r *release) say(format string, args ...any) { fmt.Fprintf(r.log, format+"\n", args...) }
