package install

import (
	"fmt"
	"io"
)

// Print writes what to add to which file, for people who add it themselves.
func (p Plan) Print(out io.Writer) error {
	for _, f := range p.Files {
		var err error
		if f.Command != "" {
			_, err = fmt.Fprintf(out, "Run this for %s, which stands in %s:\n\n%s\n\n", f.What, f.Path, f.Command)
		} else {
			_, err = fmt.Fprintf(out, "Add to %s %s:\n\n%s\n", f.Path, f.What, f.Text())
		}
		if err != nil {
			return err
		}
	}
	return p.printNotes(out)
}

// Write changes the files, and writes to out which of them it has changed. Where one of them can't be read, or does not take the
// change, it changes none, and the error says why.
func (p Plan) Write(out io.Writer) error {
	var edits []Edit
	for _, f := range p.Files {
		e, err := f.Edit()
		if err != nil {
			return err
		}
		edits = append(edits, e)
	}
	for _, e := range edits {
		if err := e.Write(); err != nil {
			return err
		}
		said := "%s is as it was: it has %s.\n"
		if e.Changes() {
			said = "%s has %s now.\n"
		}
		if _, err := fmt.Fprintf(out, said, e.Path, e.What); err != nil {
			return err
		}
	}
	return p.printNotes(out)
}

func (p Plan) printNotes(out io.Writer) error {
	for _, note := range p.Notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	return nil
}
