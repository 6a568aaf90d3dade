// Package terminal knows terminals: whether there is one, how wide it is, and how text of others is shown there without
// acting on it.
package terminal

import (
	"io"
	"os"

	"golang.org/x/term"
)

// Is reports whether what is written there is shown by a terminal at once, or what is read from there is typed.
func Is(rw any) bool {
	f, ok := rw.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// Colourful reports whether w is a terminal whose user has not refused colour.
func Colourful(w io.Writer) bool {
	return Is(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// Columns returns a function that returns how wide the terminal w is at that time; 0 where w is none.
func Columns(w io.Writer) func() int {
	if !Is(w) {
		return func() int { return 0 }
	}
	fd := int(w.(*os.File).Fd())
	return func() int {
		columns, _, err := term.GetSize(fd)
		if err != nil {
			return 0
		}
		return columns
	}
}
