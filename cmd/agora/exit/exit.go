// Package exit tells why a verb ends, in a sentence and by an exit status.
package exit

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/terminal"
)

// Exit statuses of the verbs.
const (
	Error       = 1 // none of the others
	Usage       = 2 // the command was not understood
	NotFound    = 3 // or offline
	Forbidden   = 4 // or unauthorised
	Aborted     = 5 // or timed out, or cancelled
	Unavailable = 6 // no edge, or asked to try again later
)

// Help says in the help of a verb what its exit status means.
const Help = `Exit status: 0 done, 1 another error, 2 wrong usage, 3 not found or offline,
4 unauthorised or forbidden, 5 timed out, aborted or cancelled, 6 no edge
available, or asked to try again later.`

// statusError ends the program with a status; its message was told.
type statusError struct {
	status int
	err    error
}

// With returns an error that ends the program with a status. Its message was told: the program says no more.
func With(status int, err error) error { return &statusError{status, err} }

// Error returns the message.
func (e *statusError) Error() string { return e.err.Error() }

// Unwrap returns the error that ends the program.
func (e *statusError) Unwrap() error { return e.err }

// ExitCode returns the status that the program ends with.
func (e *statusError) ExitCode() int { return e.status }

// Advised is an error with what to do about it.
type Advised struct {
	err    error
	Advice string // told behind the error
}

// Advise returns an error that [Sentence] tells with what to do about it.
func Advise(err error, advice string) error { return &Advised{err, advice} }

// Error says what is wrong, without the advice.
func (e *Advised) Error() string { return e.err.Error() }

// Unwrap returns the error that the advice is about.
func (e *Advised) Unwrap() error { return e.err }

// Failed tells an error on stderr and returns it with its exit status; nil if err is nil.
func Failed(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(Sentence(err), "\n") {
		lines = append(lines, terminal.Visible(line))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), terminal.Program+": %s\n", strings.Join(lines, "\n"+terminal.Indent))
	return With(Status(err), err)
}

// Sentence returns an error as people are told it.
func Sentence(err error) string {
	if a, ok := errors.AsType[*Advised](err); ok {
		return Sentence(a.err) + ": " + a.Advice
	}
	if e, ok := errors.AsType[*agora.Error](err); ok {
		if e.Cause != nil {
			if errors.Is(e.Cause, context.Canceled) {
				return "interrupted"
			}
			return fmt.Sprintf("%s: %v (%s)", e.Message, e.Cause, e.Code)
		}
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "time is up"
	}
	if errors.Is(err, context.Canceled) {
		return "interrupted"
	}
	return err.Error()
}

// WrongUsage tells an error on stderr, and how the command is meant to be used; nil if err is nil.
func WrongUsage(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), terminal.Program+": %s\nusage: %s\n", terminal.Visible(err.Error()), cmd.UseLine())
	return With(Usage, err)
}

// Status returns the exit status that an error stands for.
func Status(err error) int {
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.status
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, client.ErrCancelled) || errors.Is(err, client.ErrUnknown) {
		return Aborted
	}
	e, ok := errors.AsType[*agora.Error](err)
	if !ok {
		return Error
	}
	switch e.Code {
	case agora.AgentNotFound, agora.AgentOffline, agora.SpaceNotFound, agora.StreamNotFound, agora.NotFound:
		return NotFound
	case agora.Unauthorized, agora.Forbidden:
		return Forbidden
	case agora.Timeout, agora.StreamAborted:
		return Aborted
	case agora.Unavailable, agora.RateLimited:
		return Unavailable
	}
	return Error
}
