package workpath

import (
	"errors"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"unicode"
)

// Longest is how many bytes a path has at most.
const Longest = 4096

// Why a path is not taken.
var (
	ErrOutside = errors.New("lies outside of the workspace")
	ErrNoPath  = errors.New("is no path that can be checked")
	ErrRoot    = errors.New("the workspace root must be an absolute path")
)

// Root is the root of a workspace, as the names that lead to it. The first is a drive, in lower case, or empty.
type Root struct {
	names []string
	share bool // it lies on another machine: its path begins with two separators
}

// ParseRoot returns the root that a path is; ErrRoot where it is not absolute.
func ParseRoot(path string) (Root, error) {
	p, err := Plain(path)
	if err != nil || len(path) > Longest {
		return Root{}, ErrRoot
	}
	names, absolute := windows.split(p)
	if !absolute || len(names) == 0 {
		return Root{}, ErrRoot
	}
	if names, err = reduce(names[:1], names[1:]); err != nil {
		return Root{}, ErrRoot
	}
	return Root{names, isShare(p)}, nil
}

// Holds returns nil where a path lies under the root, as it is spelled: a relative one is taken from there. It looks at
// words alone, and at no link. A backslash is taken both as part of a name and as the end of one, and white space
// around the path both as part of it and as none. ErrOutside, ErrNoPath.
func (r Root) Holds(path string) error {
	p, err := Plain(path)
	if err != nil {
		return err
	}
	if err := r.holds(p); err != nil {
		return err
	}
	if bare := strings.TrimFunc(p, isBlank); bare != p {
		if strings.HasPrefix(bare, "~") {
			return ErrNoPath
		}
		return r.holds(bare)
	}
	return nil
}

func (r Root) holds(p string) error {
	// A backslash is part of a name for some systems and ends it for others, as a colon behind a letter does: neither
	// may lead out.
	if !r.has(p, windows) || r.names[0] == "" && !r.share && !r.has(p, posix) {
		return ErrOutside
	}
	switch absolute := strings.HasPrefix(p, "/") || strings.HasPrefix(p, `\`); {
	case r.share && absolute && !begins2(p), !r.share && isShare(p):
		return ErrOutside // one is on another machine, the other on this one
	}
	return nil
}

// has reports whether a path lies under the root, as a system spells it.
func (r Root) has(path string, as system) bool {
	names, absolute := as.split(path)
	from := r.names
	if absolute {
		from, names = names[:1], names[1:]
	}
	at, err := reduce(from, names)
	return err == nil && len(at) >= len(r.names) && slices.Equal(at[:len(r.names)], r.names)
}

// begins2 reports whether a path begins with two separators.
func begins2(p string) bool {
	return len(p) >= 2 && strings.IndexByte(windows.separators, p[0]) >= 0 && strings.IndexByte(windows.separators, p[1]) >= 0
}

// isShare reports whether a path is that of a share on another machine, as Windows spells it. Two slashes are one
// elsewhere.
func isShare(p string) bool { return begins2(p) && (p[0] == '\\' || p[1] == '\\') }

// Plain returns a path without what may be said around it: of a file: URL the path that it names. ErrNoPath.
func Plain(path string) (string, error) {
	if IsURL(path) {
		return ofURL(path)
	}
	if strings.IndexByte(path, 0) >= 0 || strings.HasPrefix(path, "~") {
		return "", ErrNoPath
	}
	return path, nil
}

// IsURL reports whether a string is a file: URL to some reader, in letters of any case: those that parse URLs drop
// white space and control characters before one, and line breaks and tabs within.
func IsURL(s string) bool {
	const scheme = "file:"
	n := 0
	for _, r := range s {
		switch {
		case n == 0 && isBlank(r), r == '\t', r == '\n', r == '\r':
			continue
		case unicode.ToLower(r) != rune(scheme[n]):
			return false
		}
		if n++; n == len(scheme) {
			return true
		}
	}
	return false
}

// isBlank reports whether some reader drops a character around a path or a URL.
func isBlank(r rune) bool { return r <= ' ' || unicode.IsSpace(r) || r == '\ufeff' }

// escapes are those that are left where a path was escaped twice, and might be undone by its reader: of a dot, of
// separators, of NUL, and of what begins an escape.
var escapes = regexp.MustCompile(`%(2[eEfF5]|5[cC]|00)`)

// ofURL returns the path of a file: URL.
func ofURL(s string) (string, error) {
	s = strings.NewReplacer("\t", "", "\n", "", "\r", "").Replace(strings.TrimFunc(s, isBlank))
	u, err := url.Parse(s)
	if err != nil || u.Opaque != "" || u.User != nil || u.Host != "" && u.Host != "localhost" || u.RawQuery != "" || u.ForceQuery || u.Fragment != "" {
		return "", ErrNoPath
	}
	path := u.Path
	if len(path) > 2 && drive.MatchString(path[1:]) {
		path = path[1:] // file:///c:/…
	}
	if path == "" || strings.IndexByte(path, 0) >= 0 || escapes.MatchString(path) || pipe.MatchString(path) {
		return "", ErrNoPath
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

// drive is how a path of Windows begins that names its drive, and pipe how one in a URL may begin that does.
var (
	drive = regexp.MustCompile(`^[A-Za-z]:`)
	pipe  = regexp.MustCompile(`^/*[A-Za-z]\|`)
)

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
				return nil, ErrOutside
			}
			at = at[:len(at)-1]
		case strings.Trim(name, ". ") == "": // Windows takes some of them for ".."
			return nil, ErrNoPath
		default:
			at = append(at, name)
		}
	}
	return at, nil
}
