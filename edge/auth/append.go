package auth

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// AppendLine puts a line that [NewToken] made into a token file, and has it on disk when it returns. What the file says
// stays. If there is none it is made, for its owner alone. A file that an edge would not take with that line, as the
// name stands there already, stays as it is.
func AppendLine(path, line string) (err error) {
	f, err := os.OpenFile(path, os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		return err
	}
	defer func() {
		if e := f.Close(); err == nil {
			err = e
		}
	}()
	before, err := io.ReadAll(f)
	if err != nil {
		return err
	}
	line += "\n"
	if len(before) > 0 && before[len(before)-1] != '\n' {
		line = "\n" + line
	}
	if _, err := parseTokens(bytes.NewReader(append(before, line...))); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if _, err := f.WriteString(line); err != nil { // in one piece: an edge may read it meanwhile
		return err
	}
	if err := f.Sync(); err != nil {
		return err
	}
	if d, err := os.Open(filepath.Dir(path)); err == nil { // or who may not look into the folder has made no file there
		defer d.Close()
		return d.Sync()
	}
	return nil
}
