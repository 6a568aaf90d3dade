package tools

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/agora-relay/agora/internal/workpath"
)

// Bounds of paths.
const (
	maxSteps = 1 << 15 // names that are looked up on the disk for one call
	maxLinks = 40      // on the way of one path
)

var errSteps = errors.New("has too many paths to be resolved")

// CheckRoot returns nil where a path may be declared as an agent's workspace root.
func CheckRoot(root string) error {
	_, err := workpath.ParseRoot(root)
	return err
}

// workspace is a root.
type workspace struct {
	workpath.Root
	seen string // where it really is on this machine; empty where it can't be seen, or is not to be looked at
}

type workspaces []workspace

func newWorkspaces(roots []string, resolve bool) (all workspaces, err error) {
	for _, root := range roots {
		if root == "" {
			continue
		}
		w, err := newWorkspace(root, resolve)
		if err != nil {
			return nil, err
		}
		all = append(all, w)
	}
	return all, nil
}

func newWorkspace(root string, resolve bool) (w workspace, err error) {
	if w.Root, err = workpath.ParseRoot(root); err != nil {
		return w, err
	}
	p, err := workpath.Plain(root)
	if err != nil || !resolve || !filepath.IsAbs(p) {
		return w, err
	}
	if _, err := os.Stat(p); err == nil {
		if w.seen, err = filepath.EvalSymlinks(p); err != nil {
			w.seen = ""
		}
	}
	return w, nil
}

// hold returns nil where a path lies under every root. It takes from steps what it looks up.
func (all workspaces) hold(path string, steps *int) error {
	for _, w := range all {
		if err := w.Holds(path); err != nil {
			return err
		}
		if w.seen == "" {
			continue
		}
		p, err := workpath.Plain(path)
		if err != nil {
			return err
		}
		for _, p := range []string{p, strings.TrimSpace(p)} {
			if err := w.reaches(p, steps); err != nil {
				return err
			}
		}
	}
	return nil
}

// reaches returns nil where a path leads under the root on this machine: as it stands, and with each ".." taken
// together with the name before it, as programs do.
func (w *workspace) reaches(path string, steps *int) error {
	from := w.seen
	if filepath.IsAbs(path) {
		from = string(filepath.Separator)
	}
	for _, p := range []string{path, filepath.Clean(path)} {
		to, err := walk(from, strings.Split(filepath.ToSlash(p), "/"), steps)
		if err != nil {
			return err
		}
		if to != w.seen && !strings.HasPrefix(to, strings.TrimSuffix(w.seen, "/")+"/") {
			return workpath.ErrOutside
		}
	}
	return nil
}

// walk returns where names lead from a place without links. Behind a name that is not there yet, nothing is looked up.
func walk(at string, names []string, steps *int) (string, error) {
	links, there := 0, true
	for len(names) > 0 {
		name := names[0]
		names = names[1:]
		switch name {
		case "", ".":
			continue
		case "..":
			at, there = filepath.Dir(at), true
			continue
		}
		at = filepath.Join(at, name)
		if !there {
			continue
		}
		if *steps--; *steps < 0 {
			return "", errSteps
		}
		info, err := os.Lstat(at)
		switch {
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR), errors.Is(err, syscall.ENAMETOOLONG):
			there = false
		case err != nil:
			return "", workpath.ErrNoPath
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return "", workpath.ErrNoPath
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = string(filepath.Separator)
			}
			names = append(strings.Split(to, "/"), names...)
		}
	}
	return at, nil
}
