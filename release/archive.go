package main

import (
	"archive/tar"
	"archive/zip"
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// entry is a file in an archive, or a folder where the name ends with a slash.
type entry struct {
	name    string
	mode    int64
	owner   int // uid and gid
	content []byte
}

// archive writes the archive for a platform: the program, its licence and first page, and completions, in one folder.
func (r *release) archive(t target, program string, shells []entry) error {
	files := []entry{{name: t.program(), mode: 0o755}}
	var err error
	if files[0].content, err = os.ReadFile(program); err != nil {
		return err
	}
	for _, name := range []string{"LICENSE", "README.md", "CHANGELOG.md"} {
		content, err := os.ReadFile(filepath.Join(r.root, name))
		if err != nil {
			return err
		}
		files = append(files, entry{name: name, mode: 0o644, content: content})
	}
	files = append(files, shells...)
	for k := range files {
		files[k].name = r.name(t, "/") + files[k].name
	}
	var out bytes.Buffer
	if t.os == "windows" {
		if err := writeZip(&out, files, r.time); err != nil {
			return err
		}
		return r.write(r.name(t, ".zip"), out.Bytes())
	}
	packed := gzip.NewWriter(&out) // without a time
	if err := writeTar(packed, files, r.time); err != nil {
		return err
	}
	if err := packed.Close(); err != nil {
		return err
	}
	return r.write(r.name(t, ".tar.gz"), out.Bytes())
}

// writeTar writes files as a tar archive in which everything has the same time.
func writeTar(w io.Writer, files []entry, at time.Time) error {
	out := tar.NewWriter(w)
	for _, f := range files {
		h := &tar.Header{Name: f.name, Mode: f.mode, Uid: f.owner, Gid: f.owner, Size: int64(len(f.content)), ModTime: at, Format: tar.FormatPAX, Typeflag: tar.TypeReg}
		if strings.HasSuffix(f.name, "/") {
			h.Typeflag = tar.TypeDir
		}
		if err := out.WriteHeader(h); err != nil {
			return err
		}
		if _, err := out.Write(f.content); err != nil {
			return err
		}
	}
	return out.Close()
}

// writeZip writes files as a zip archive in which everything has the same time.
func writeZip(w io.Writer, files []entry, at time.Time) error {
	out := zip.NewWriter(w)
	for _, f := range files {
		h := &zip.FileHeader{Name: f.name, Method: zip.Deflate, Modified: at}
		h.SetMode(os.FileMode(f.mode))
		file, err := out.CreateHeader(h)
		if err != nil {
			return err
		}
		if _, err := file.Write(f.content); err != nil {
			return err
		}
	}
	return out.Close()
}

// checksums writes SHA256SUMS, which `sha256sum -c` reads, of all files in a folder.
func checksums(dir string) error {
	files, err := os.ReadDir(dir) // sorted
	if err != nil {
		return err
	}
	var sums bytes.Buffer
	for _, f := range files {
		content, err := os.ReadFile(filepath.Join(dir, f.Name()))
		if err != nil {
			return err
		}
		fmt.Fprintf(&sums, "%x  %s\n", sha256.Sum256(content), f.Name())
	}
	return os.WriteFile(filepath.Join(dir, "SHA256SUMS"), sums.Bytes(), 0o644)
}
