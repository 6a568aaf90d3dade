package install

import (
	"fmt"
	"io"
)

// Print writes what to add to which file, or what to remove from it, for people who do that themselves.
func (p Plan) Print(out io.Writer) error {
	for _, f := range p.Files {
		var err error
		if p.removes {
			_, err = fmt.Fprintf(out, "Remove from %s %s:\n\n%s\n", f.Path, f.What, f.Text())
		} else if f.Command != "" {
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

// Write changes the files, and writes to out which of them it has changed. Where one of them can't be read, or does not
// take the change, it changes none, and the error says why.
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
		if _, err := fmt.Fprintf(out, p.told(e), e.Path, e.What); err != nil {
			return err
		}
	}
	return p.printNotes(out)
}

// told is what is said of a change, with the file's path and what that has.
func (p Plan) told(e Edit) string {
	switch {
	case p.removes && !e.Changes():
		return "%s is as it was: it has nothing of %s.\n"
	case p.removes && e.after == nil:
		return "%s is removed: it had %s, and nothing else.\n"
	case p.removes:
		return "%s no longer has %s.\n"
	case e.Changes():
		return "%s has %s now.\n"
	}
	return "%s is as it was: it has %s.\n"
}

func (p Plan) printNotes(out io.Writer) error {
	for _, note := range p.Notes {
		if _, err := fmt.Fprintln(out, note); err != nil {
			return err
		}
	}
	return nil
}
