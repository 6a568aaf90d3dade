package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/internal/pause"
)

// argument is a text, or JSON, that a verb takes. What stands in the command line is that text and nothing else, as
// scripts put there what others have written: a file is named by a flag, and - is stdin unless it stands behind --.
type argument struct {
	what string // it is, such as TEXT
	at   int    // its index among the arguments
	file string
}

func (a *argument) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&a.file, "file", "", "take "+a.what+" from this file; - is stdin")
}

// last checks the number of arguments of a verb of which it is the last one, and says what is wrong where a text has
// become several.
func (a *argument) last(cmd *cobra.Command, args []string) error {
	if len(args) > a.at+1 {
		return fmt.Errorf("%s is one argument, and %d were given: put it into quotes", a.what, len(args)-a.at)
	}
	return cobra.MinimumNArgs(a.at)(cmd, args)
}

// there reports whether it is given at all.
func (a *argument) there(args []string) bool { return a.file != "" || len(args) > a.at }

// read returns it, however it is given.
func (a *argument) read(cmd *cobra.Command, args []string) ([]byte, error) {
	switch given := len(args) > a.at; {
	case given && a.file != "":
		return nil, fmt.Errorf("%s and --file can't go together", a.what)
	case a.file != "":
		return contents(cmd, a.file)
	case !given:
		return nil, fmt.Errorf("%s or --file is missing", a.what)
	case args[a.at] == stdin && !literal(cmd, a.at):
		return contents(cmd, stdin)
	}
	return []byte(args[a.at]), nil
}

// stdin stands for what is read from there.
const stdin = "-"

// literal reports whether an argument stands behind --.
func literal(cmd *cobra.Command, at int) bool {
	dash := cmd.ArgsLenAtDash()
	return dash >= 0 && at >= dash
}

// contents returns what a file has that a flag names.
func contents(cmd *cobra.Command, file string) ([]byte, error) {
	if file == stdin {
		return io.ReadAll(cmd.InOrStdin())
	}
	return os.ReadFile(file)
}

// input is what a verb sends: text, which becomes {"text": …}, or raw JSON.
type input struct {
	text                 argument
	payload, payloadFile string
}

// text is a text that stands at an index.
func text(at int) *argument { return &argument{what: "TEXT", at: at} }

// flags defines the flags of a verb whose text is the argument at an index.
func (in *input) flags(cmd *cobra.Command, at int) {
	in.text = *text(at)
	in.text.flags(cmd)
	in.payloadFlags(cmd)
}

// payloadFlags are the flags of a verb that takes no text.
func (in *input) payloadFlags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.payload, "payload", "", "send this JSON as it is; - is stdin")
	cmd.Flags().StringVar(&in.payloadFile, "payload-file", "", "send the JSON in this file as it is; - is stdin")
}

// body returns the payload: of a flag, or of the text.
func (in *input) body(cmd *cobra.Command, args []string) (json.RawMessage, error) {
	raw := in.payload != "" || in.payloadFile != ""
	switch {
	case raw && in.text.there(args):
		return nil, exit.WrongUsage(cmd, errors.New("text and --payload can't go together"))
	case raw:
		b, err := in.rawPayload(cmd)
		return b, exit.WrongUsage(cmd, err)
	case !in.text.there(args):
		return nil, exit.WrongUsage(cmd, errors.New("TEXT, --file or --payload is missing"))
	}
	b, err := in.text.read(cmd, args)
	if err == nil && !utf8.Valid(b) {
		err = errors.New("text is not UTF-8")
	}
	if err != nil {
		return nil, exit.WrongUsage(cmd, err)
	}
	return textPayload(string(b))
}

// rawPayload returns the JSON that a flag gives.
func (in *input) rawPayload(cmd *cobra.Command) (b []byte, err error) {
	switch {
	case in.payload != "" && in.payloadFile != "":
		return nil, errors.New("--payload and --payload-file can't go together")
	case in.payload == stdin:
		b, err = contents(cmd, stdin)
	case in.payload != "":
		b = []byte(in.payload)
	default:
		b, err = contents(cmd, in.payloadFile)
	}
	if err == nil && !json.Valid(b) {
		err = errors.New("the payload is no valid JSON; --payload-file names a file")
	}
	return b, err
}

// streamable is body, but with stream stdin has the text, and only what it begins with is asked for.
func (in *input) streamable(cmd *cobra.Command, args []string, stream bool) (json.RawMessage, error) {
	if !stream {
		return in.body(cmd, args)
	}
	if in.text.there(args) {
		return nil, exit.WrongUsage(cmd, errors.New("with --stream the text comes from stdin"))
	}
	return in.start(cmd)
}

// start returns the payload that a stream begins with, or nil.
func (in *input) start(cmd *cobra.Command) (json.RawMessage, error) {
	if in.payload == "" && in.payloadFile == "" {
		return nil, nil
	}
	if in.payload == stdin || in.payloadFile == stdin {
		return nil, exit.WrongUsage(cmd, errors.New("stdin is the stream; the payload can't be read from it"))
	}
	b, err := in.rawPayload(cmd)
	return b, exit.WrongUsage(cmd, err)
}

func textPayload(text string) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"text": text})
}

// source reads so that a read can be given up: the one under way continues until
// its reader has something, which for stdin nothing but the end of the program interrupts.
type source struct {
	ctx    context.Context
	pieces chan piece
	rest   []byte
	err    error
}

type piece struct {
	data []byte
	err  error
}

const (
	pieceSize       = 16 << 10
	backgroundPause = time.Second // between attempts to read a terminal that other programs have now
)

func newSource(ctx context.Context, r io.Reader) *source {
	s := &source{ctx: ctx, pieces: make(chan piece)}
	go s.pump(r) // bare, for nobody can wait for a read of stdin
	return s
}

func (s *source) pump(r io.Reader) {
	for {
		b := make([]byte, pieceSize)
		n, err := r.Read(b)
		if errors.Is(err, terminal.ErrBackground) && pause.For(s.ctx, backgroundPause) {
			continue
		}
		select {
		case s.pieces <- piece{b[:n], err}:
		case <-s.ctx.Done():
			return
		}
		if err != nil {
			return
		}
	}
}

// Read implements io.Reader.
func (s *source) Read(p []byte) (int, error) {
	for len(s.rest) == 0 {
		if s.err != nil {
			return 0, s.err
		}
		select {
		case next := <-s.pieces:
			s.rest, s.err = next.data, next.err
		case <-s.ctx.Done():
			return 0, s.ctx.Err()
		}
	}
	n := copy(p, s.rest)
	s.rest = s.rest[n:]
	return n, nil
}
