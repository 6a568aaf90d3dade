package install

import (
	"bytes"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// File is a file of a host, and what it is to have.
type File struct {
	Path    string // absolute
	What    string // what is added, for people
	Command string // of the host, which does the same; empty where there is none

	change  change
	root    string // directory that no link leads out of: the project, or what is the user's own
	private bool   // a new file is for its owner alone
}

// change is what becomes of a file.
type change interface {
	// text returns what to add, to be pasted.
	text() string
	// apply returns what the file has with it, which is content itself where it has it already. It fails where it has
	// another entry of that name, or is not of the form that the host reads.
	apply(content []byte) ([]byte, error)
}

// Text returns what to add to the file, to be pasted.
func (f File) Text() string { return f.change.text() }

// largest is the most bytes that a file may have.
const largest = 16 << 20

// Edit is a change of a file that can be made.
type Edit struct {
	File
	at     place  // the file, behind symbolic links
	before []byte // nil for none
	after  []byte // nil for none
}

// Edit reads the file and returns the change to it. It changes nothing. It fails where the file can't be read, is not
// of the form that the host reads, has another entry of that name, or is reached by a link that leads out of the
// project, or out of the user's home.
func (f File) Edit() (Edit, error) {
	e := Edit{File: f}
	var err error
	if e.at, err = f.behindLinks(); err != nil {
		return e, err
	}
	root, err := os.OpenRoot(e.at.root)
	if err != nil {
		return e, err
	}
	defer root.Close()
	if e.before, err = read(root, e.at.name); err != nil {
		return e, err
	}
	if e.after, err = f.change.apply(e.before); err != nil {
		return e, fmt.Errorf("%s is left as it is: %w", f.Path, err)
	}
	return e, nil
}

// place is a file without links: a directory that is not left, and the file's name in it.
type place struct{ root, name string }

// behindLinks returns where a file is, or would be, behind all links that lead there. It fails where one leads out of
// the root.
func (f File) behindLinks() (place, error) {
	root, err := filepath.EvalSymlinks(f.root)
	if err != nil {
		return place{}, err
	}
	there, rest := f.Path, ""
	for { // what is not there yet has no links
		if _, err := os.Lstat(there); err == nil {
			break
		}
		there, rest = filepath.Dir(there), filepath.Join(filepath.Base(there), rest)
	}
	if there, err = filepath.EvalSymlinks(there); err != nil {
		return place{}, err
	}
	name, err := filepath.Rel(root, filepath.Join(there, rest))
	if err != nil || !filepath.IsLocal(name) {
		return place{}, fmt.Errorf("%s is left as it is: a link leads out of %s", f.Path, f.root)
	}
	return place{root, name}, nil
}

// read returns what a file has, and nil where there is none.
func read(root *os.Root, path string) ([]byte, error) {
	f, err := root.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	b, err := io.ReadAll(io.LimitReader(f, largest+1))
	if err == nil && len(b) > largest {
		err = fmt.Errorf("%s is larger than %d bytes", path, largest)
	}
	return append([]byte{}, b...), err
}

// Changes reports whether the file lacks anything.
func (e Edit) Changes() bool {
	return (e.before == nil) != (e.after == nil) || !bytes.Equal(e.before, e.after)
}

// Write makes the change where there is one. A file of which nothing is left is removed. Readers see the file of before
// or the whole one of after. Its mode stays; a new one is for its owner alone where it is a user's. Directories are
// made. It fails where the file was changed since it was read, and where a link leads out of the project by now.
func (e Edit) Write() error {
	if !e.Changes() {
		return nil
	}
	root, err := os.OpenRoot(e.at.root)
	if err != nil {
		return err
	}
	defer root.Close()
	if e.after == nil {
		if err := e.asRead(root); err != nil {
			return err
		}
		return remove(root, e.at.name)
	}
	return e.write(root)
}

// remove removes a file, and the directories that have nothing else.
func remove(root *os.Root, name string) error {
	if err := root.Remove(name); err != nil {
		return err
	}
	for dir := filepath.Dir(name); dir != "." && root.Remove(dir) == nil; { // one that has something else stays
		dir = filepath.Dir(dir)
	}
	return nil
}

// asRead fails where the file was changed since it was read.
func (e Edit) asRead(root *os.Root) error {
	if now, err := read(root, e.at.name); err != nil || !bytes.Equal(now, e.before) {
		return errors.Join(fmt.Errorf("%s was changed meanwhile: run it again", e.Path), err)
	}
	return nil
}

func (e Edit) write(root *os.Root) error {
	dirMode, mode := fs.FileMode(0o755), fs.FileMode(0o644)
	if e.private {
		dirMode, mode = 0o700, 0o600
	}
	if info, err := root.Stat(e.at.name); err == nil {
		mode = info.Mode().Perm()
	}
	dir := filepath.Dir(e.at.name)
	if err := root.MkdirAll(dir, dirMode); err != nil {
		return err
	}
	name := filepath.Join(dir, "."+filepath.Base(e.at.name)+"."+rand.Text())
	tmp, err := root.OpenFile(name, os.O_RDWR|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer root.Remove(name)
	_, err = tmp.Write(e.after)
	if err = errors.Join(err, tmp.Chmod(mode), tmp.Sync(), tmp.Close()); err != nil {
		return err
	}
	if err := e.asRead(root); err != nil {
		return err
	}
	return root.Rename(name, e.at.name)
}

// wholeFile is a file of Agora's own.
type wholeFile string

func (w wholeFile) text() string { return string(w) }

func (w wholeFile) apply(content []byte) ([]byte, error) {
	if len(content) > 0 && string(content) != string(w) {
		return nil, errors.New("it has other text; remove the file, or give another --name")
	}
	return []byte(w), nil
}
