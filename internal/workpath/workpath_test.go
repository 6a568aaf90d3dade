package workpath

import (
	"errors"
	"strings"
	"testing"
)

func TestNamesOfPathsAreToldByTheirWords(t *testing.T) {
	for _, name := range []string{
		"path", "paths", "file", "files", "filename", "filenames", "dir", "dirs", "directory", "directories", "folder", "folders", "root", "roots", "cwd",
		"PATH", "Paths", "file_name", "filePaths", "target-dir", "SourceDirectories", "src.path", "src path", "file1", "path2d", "HTTPPath", "FILE_PATHS", "rootCause", "pathToModel",
		"filepath", "filepaths", "workdir", "outputfile", "pathname", "DirName", "input_file_list", "workdirOverride", "profile", "pathſ", "fileNames", "new_file_content", "файл_path", "dirsToScan",
	} {
		if !IsName(name) {
			t.Errorf("%q is not taken for a path", name)
		}
	}
	for _, name := range []string{
		"", "target", "name", "content", "url", "uri", "direction", "directive", "empathy", "pathetic", "profileImage", "profile_url", "filter", "dirty", "rooted", "text", "fields", "nadirAngle", "apathy",
	} {
		if IsName(name) {
			t.Errorf("%q is taken for a path", name)
		}
	}
}

func TestURLsOfFilesAreToldHoweverTheyAreSpelt(t *testing.T) {
	for _, s := range []string{"file:", "file:///a", "FILE:/a", " \t\nFile:a", "\x00\x1ffile:a", "fi\nle:///a", "f\ti\rl\ne\t:///a", "\u00a0\ufefffile:///a"} {
		if !IsURL(s) {
			t.Errorf("%q is no URL of a file", s)
		}
	}
	for _, s := range []string{"", "file", "files:", "a file:", "profile:x", "https://file:80/", "f ile:", "xfile:"} {
		if IsURL(s) {
			t.Errorf("%q is a URL of a file", s)
		}
	}
}

func TestNoSpellingOfAPathLeadsOutOfTheRoot(t *testing.T) {
	for _, c := range []struct {
		root, path string
		err        error
	}{
		{"/work", "a/b", nil}, {"/work", "/work/a", nil}, {"/work", "//work/a", nil}, {"/work", " a ", nil}, {"/work", strings.Repeat("a/", 3000), nil},
		{`C:\work`, `c:\work\a`, nil}, {`C:\work`, "file:///C:/work/a", nil}, {`\\server\share`, `\\server\share\a`, nil}, {`\\server\share`, `a\b`, nil}, {`\\server\share`, "//server/share/a", nil},
		{"/work", "file:///work/a%20b", nil}, {"/work", " file:///work/a\n", nil}, {"/work", "file:///work/50%25", nil},
		{"/work", " /etc/passwd", ErrOutside}, {"/work", "\t../etc", ErrOutside}, {"/work", "\u00a0/etc", ErrOutside}, {"/work", " ~/a", ErrNoPath}, {"/work", "~root", ErrNoPath}, {"/work", "a\x00b", ErrNoPath},
		{"/work", `\\server\share`, ErrOutside}, {"/work", `/\work\a`, ErrOutside}, {"/work", `\\work\a`, ErrOutside}, {"/work", `\\?\C:\a`, ErrOutside}, {"/work", `\\.\pipe\a`, ErrOutside}, {"/work", `c:a`, ErrOutside},
		{`\\server\share`, `\server\share\a`, ErrOutside}, {`\\server\share`, `/server/share/a`, ErrOutside}, {`\\server\share`, `\\other\share\a`, ErrOutside},
		{"/work", "file:///etc", ErrOutside}, {"/work", "fi\tle:///etc", ErrOutside}, {"/work", " FILE:/etc", ErrOutside}, {"/work", "file:///work/%2e%2e/etc", ErrOutside}, {"/work", "file:///work/..%2fetc", ErrOutside},
		{"/work", "file:///work/%252e%252e/etc", ErrNoPath}, {"/work", "file:///work/..%255cetc", ErrNoPath}, {"/work", "file:///work/%00", ErrNoPath}, {"/work", "file://server/work/a", ErrNoPath}, {"/work", "file:work/a", ErrNoPath},
		{"/work", `file:\\work\a`, ErrNoPath}, {"/work", "file:///c|/work", ErrNoPath}, {"/work", "file:///work/a?b", ErrNoPath}, {"/work", "file:///work/a#b", ErrNoPath}, {"/work", "file:///C:/work", ErrOutside},
		{"/work", "file://u@localhost/work/a", ErrNoPath}, {"/work", `file:///work\..\..\etc`, ErrOutside},
	} {
		r, err := ParseRoot(c.root)
		if err != nil {
			t.Fatal(err)
		}
		if err := r.Holds(c.path); !errors.Is(err, c.err) || err == nil != (c.err == nil) {
			t.Errorf("%.60q under %q: %v, want %v", c.path, c.root, err, c.err)
		}
	}
	for _, root := range []string{"", "a", "~/a", "./a", "/a/../..", "/" + strings.Repeat("a", Longest), "/\x00"} {
		if _, err := ParseRoot(root); !errors.Is(err, ErrRoot) {
			t.Errorf("%.20q is taken for a root: %v", root, err)
		}
	}
}
