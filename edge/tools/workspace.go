package tools

import (
	"errors"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"syscall"
)

// Bounds of paths.
const (
	maxPath  = 4096    // bytes of one
	maxSteps = 1 << 15 // names that are looked up on the disk for one call
	maxLinks = 40      // on the way of one path
)

var (
	errOutside = errors.New("lies outside of the workspace")
	errNoPath  = errors.New("is no path that can be checked")
	errRoot    = errors.New("the workspace root must be an absolute path")
	errSteps   = errors.New("has too many paths to be resolved")
)

// CheckRoot returns nil where a path may be declared as an agent's workspace root.
func CheckRoot(root string) error {
	_, err := newWorkspace(root, false)
	return err
}

// workspace is a root, as the names that lead to it. The first is a drive, in lower case, or empty.
type workspace struct {
	names []string
	seen  string // where it really is on this machine; empty where it can't be seen, or is not to be looked at
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

func newWorkspace(root string, resolve bool) (workspace, error) {
	p, err := plain(root)
	if err != nil {
		return workspace{}, errRoot
	}
	names, absolute := windows.split(p)
	if !absolute || len(names) == 0 {
		return workspace{}, errRoot
	}
	if names, err = reduce(names[:1], names[1:]); err != nil {
		return workspace{}, errRoot
	}
	w := workspace{names: names}
	if !resolve || !filepath.IsAbs(p) {
		return w, nil
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
	p, err := plain(path)
	if err != nil {
		return err
	}
	for _, w := range all {
		// A backslash is part of a name for some systems and ends it for others, as a colon behind a letter does: neither may lead out.
		if !w.has(p, windows) || w.names[0] == "" && !w.has(p, posix) {
			return errOutside
		}
		if w.seen == "" {
			continue
		}
		if err := w.reaches(p, steps); err != nil {
			return err
		}
	}
	return nil
}

// plain returns a path without what may be said around it.
func plain(path string) (string, error) {
	if len(path) >= 5 && strings.EqualFold(path[:5], "file:") {
		u, err := url.Parse(path)
		if err != nil || u.Opaque != "" || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.Fragment != "" {
			return "", errNoPath
		}
		if path = u.Path; len(path) > 2 && drive.MatchString(path[1:]) {
			path = path[1:] // file:///c:/…
		}
		if path == "" {
			return "", errNoPath
		}
	}
	if len(path) > maxPath || strings.IndexByte(path, 0) >= 0 || strings.HasPrefix(path, "~") {
		return "", errNoPath
	}
	return path, nil
}

// system is how paths are spelled.
type system struct {
	separators string
	drives     bool
}

var (
	posix   = system{separators: "/"}
	windows = system{separators: `/\`, drives: true}
)

// drive is how a path of Windows begins that names its drive.
var drive = regexp.MustCompile(`^[A-Za-z]:`)

// split returns the names in a path. Those of an absolute one begin with its drive, which is empty where there is none.
func (s system) split(path string) (names []string, absolute bool) {
	volume := ""
	if d := drive.FindString(path); s.drives && d != "" {
		volume, path = strings.ToLower(d), path[len(d):]
	}
	names = strings.FieldsFunc(path, func(r rune) bool { return strings.ContainsRune(s.separators, r) })
	if volume != "" || path != "" && strings.IndexByte(s.separators, path[0]) >= 0 {
		return append([]string{volume}, names...), true
	}
	return names, false
}

// reduce returns where names lead from a place, of which the first name is never left. What is above that is outside.
func reduce(from, names []string) ([]string, error) {
	at := slices.Clone(from)
	for _, name := range names {
		switch {
		case name == ".":
		case name == "..":
			if len(at) == 1 {
				return nil, errOutside
			}
			at = at[:len(at)-1]
		case strings.Trim(name, ". ") == "": // Windows takes some of them for ".."
			return nil, errNoPath
		default:
			at = append(at, name)
		}
	}
	return at, nil
}

// has reports whether a path lies under the root, as it is spelled.
func (w *workspace) has(path string, as system) bool {
	names, absolute := as.split(path)
	from := w.names
	if absolute {
		from, names = names[:1], names[1:]
	}
	at, err := reduce(from, names)
	return err == nil && len(at) >= len(w.names) && slices.Equal(at[:len(w.names)], w.names)
}

// reaches returns nil where a path leads under the root on this machine: as it stands, and with each ".." taken together with the name before it, as programs do.
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
			return errOutside
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
		case errors.Is(err, os.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
			there = false
		case err != nil:
			return "", errNoPath
		case info.Mode()&os.ModeSymlink != 0:
			to, err := os.Readlink(at)
			if links++; err != nil || links > maxLinks {
				return "", errNoPath
			}
			if at = filepath.Dir(at); filepath.IsAbs(to) {
				at = string(filepath.Separator)
			}
			names = append(strings.Split(to, "/"), names...)
		}
	}
	return at, nil
}
