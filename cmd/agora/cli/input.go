package cli

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora/cmd/agora/exit"
	"github.com/agora-relay/agora/cmd/agora/terminal"
	"github.com/agora-relay/agora/internal/pause"
)

// input is what a verb sends: text, which becomes {"text": …}, or raw JSON.
type input struct{ payload string }

func (in *input) flags(cmd *cobra.Command) {
	cmd.Flags().StringVar(&in.payload, "payload", "", "send this JSON as it is; @FILE and - (stdin) work here, too")
}

// body returns the payload: of the flag, or of the one argument.
func (in *input) body(cmd *cobra.Command, args []string) (json.RawMessage, error) {
	switch {
	case in.payload != "" && len(args) > 0:
		return nil, exit.WrongUsage(cmd, errors.New("text and --payload can't go together"))
	case in.payload != "":
		b, err := contents(cmd, in.payload)
		if err == nil && !json.Valid(b) {
			err = errors.New("--payload is no valid JSON")
		}
		return b, exit.WrongUsage(cmd, err)
	case len(args) == 0:
		return nil, exit.WrongUsage(cmd, errors.New("text or --payload is missing"))
	}
	b, err := contents(cmd, args[0])
	if err == nil && !utf8.Valid(b) {
		err = errors.New("text is not UTF-8")
	}
	if err != nil {
		return nil, exit.WrongUsage(cmd, err)
	}
	return textPayload(string(b))
}

// streamable is body, but with stream stdin has the text, and only what it begins with is asked for.
func (in *input) streamable(cmd *cobra.Command, args []string, stream bool) (json.RawMessage, error) {
	if !stream {
		return in.body(cmd, args)
	}
	if len(args) > 0 {
		return nil, exit.WrongUsage(cmd, errors.New("with --stream the text comes from stdin"))
	}
	return in.start(cmd)
}

// start returns the payload that a stream begins with, or nil.
func (in *input) start(cmd *cobra.Command) (json.RawMessage, error) {
	if in.payload == "" {
		return nil, nil
	}
	if in.payload == "-" {
		return nil, exit.WrongUsage(cmd, errors.New("stdin is the stream; --payload can't be read from it"))
	}
	return in.body(cmd, nil)
}

func textPayload(text string) (json.RawMessage, error) {
	return json.Marshal(map[string]string{"text": text})
}

// contents returns what an argument stands for: -, @FILE or itself.
func contents(cmd *cobra.Command, arg string) ([]byte, error) {
	if arg == "-" {
		return io.ReadAll(cmd.InOrStdin())
	}
	if name, ok := strings.CutPrefix(arg, "@"); ok {
		return os.ReadFile(name)
	}
	return []byte(arg), nil
}

// source reads so that a read can be given up: the one under way goes on until
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
