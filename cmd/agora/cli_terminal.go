package main

import (
	"io"
	"os"

	"golang.org/x/term"
)

// isTerminal tells whether what is written there is shown by a terminal at once, or what is read from there is typed.
func isTerminal(rw any) bool {
	f, ok := rw.(*os.File)
	return ok && term.IsTerminal(int(f.Fd()))
}

// colourful tells whether w is a terminal whose user has not refused colour.
func colourful(w io.Writer) bool {
	return isTerminal(w) && os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
}

// columnsOf returns what tells how wide a terminal is now; 0 for what is none.
func columnsOf(w io.Writer) func() int {
	if !isTerminal(w) {
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
