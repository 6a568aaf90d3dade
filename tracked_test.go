package agora_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"
)

const largestTracked = 1 << 20 // bytes of a file that git keeps

// programs are the first bytes of executable formats: ELF, PE, Mach-O of both byte orders and of several architectures,
// WebAssembly.
var programs = []string{"\x7fELF", "MZ", "\xcf\xfa\xed\xfe", "\xce\xfa\xed\xfe", "\xfe\xed\xfa\xcf", "\xfe\xed\xfa\xce", "\xca\xfe\xba\xbe", "\x00asm"}

// TestGitKeepsNothingThatABuildMakes holds that no tracked file is a program or larger than a mebibyte.
func TestGitKeepsNothingThatABuildMakes(t *testing.T) {
	t.Parallel()
	out, err := exec.Command("git", "ls-files", "-z").Output()
	if err != nil {
		t.Fatalf("git ls-files: %v", err)
	}
	for path := range strings.SplitSeq(strings.Trim(string(out), "\x00"), "\x00") {
		if wrong := unwanted(t, path); wrong != "" {
			t.Errorf("git keeps %s, %s: git rm --cached it, and name it in .gitignore", path, wrong)
		}
	}
}

func TestProgramsAndLargeFilesAreUnwanted(t *testing.T) {
	t.Parallel()
	at := func(content []byte) string {
		path := t.TempDir() + "/file"
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		return unwanted(t, path)
	}
	for _, magic := range programs {
		if at([]byte(magic+" and more")) == "" {
			t.Errorf("a file that begins with %q is taken for none of a build's", magic)
		}
	}
	if at(make([]byte, largestTracked+1)) == "" {
		t.Error("a file of more than a mebibyte is taken for none of a build's")
	}
	if wrong := at([]byte("package agora")); wrong != "" {
		t.Errorf("a source is taken for %s", wrong)
	}
}

// unwanted returns what a file is that git should not keep; nothing for one that it should, or that has been removed.
func unwanted(t *testing.T, path string) string {
	t.Helper()
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return ""
	}
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	if at, err := f.Stat(); err != nil {
		t.Fatal(err)
	} else if at.Size() > largestTracked {
		return "a file of more than a mebibyte"
	}
	var first [4]byte
	n, err := io.ReadFull(f, first[:])
	if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
		t.Fatal(err)
	}
	for _, magic := range programs {
		if bytes.HasPrefix(first[:n], []byte(magic)) {
			return "a program"
		}
	}
	return ""
}
