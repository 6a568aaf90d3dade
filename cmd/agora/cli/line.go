package cli

import (
	"io"
	"strings"

	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// line makes lines that a terminal does not break by itself: what is too long continues below, behind an indent.
type line struct {
	b  strings.Builder
	at int // column
}

const (
	tabWidth = 8
	dimmed   = "\x1b[2m"
	named    = "\x1b[36m"
	usual    = "\x1b[0m"
)

func (l *line) newline() {
	l.b.WriteByte('\n')
	l.at = 0
}

func (l *line) indent() {
	l.b.WriteString(terminal.Indent)
	l.at = len(terminal.Indent)
}

// token appends a character as it is shown; width is that of the terminal, 0 for none. A tab becomes spaces.
func (l *line) token(r rune, shown string, plain bool, width int) {
	if r == '\t' {
		shown = terminal.Indent
		if width > 0 {
			shown = strings.Repeat(" ", tabWidth-l.at%tabWidth)
		}
	}
	n := len(shown)
	if plain {
		n = cells(r)
	}
	if width > len(terminal.Indent)+tabWidth && l.at+n > width {
		l.newline()
		l.indent()
	}
	l.b.WriteString(shown)
	l.at += n
}

// cells returns in how many columns a character may be shown at most: rather too many than that the terminal breaks a
// line.
func cells(r rune) int {
	if r < 0x1100 {
		return 1
	}
	return 2
}

// text appends text that has no end of line.
func (l *line) text(s string, width int) {
	terminal.Tokens(s, func(r rune, shown string, plain bool) bool {
		l.token(r, shown, plain, width)
		return true
	})
}

// dim appends what is said by nobody.
func (l *line) dim(colour bool, s string, width int) { l.styled(colour, dimmed, s, width) }

// head appends who speaks.
func (l *line) head(colour bool, h head, width int) {
	l.styled(colour, named, h.name, width)
	if h.more != "" {
		l.styled(colour, dimmed, " "+h.more, width)
	}
	l.text(": ", width)
}

func (l *line) styled(colour bool, style, s string, width int) {
	if !colour {
		l.text(s, width)
		return
	}
	l.b.WriteString(style)
	l.text(s, width)
	l.b.WriteString(usual)
}

// writeTo writes what was appended since the last call.
func (l *line) writeTo(w io.Writer) error {
	if l.b.Len() == 0 {
		return nil
	}
	_, err := io.WriteString(w, l.b.String())
	l.b.Reset()
	return err
}
