package main

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
)

// Exit statuses of the verbs.
const (
	exitError       = 1
	exitUsage       = 2
	exitNotFound    = 3
	exitForbidden   = 4
	exitAborted     = 5
	exitUnavailable = 6
)

const exitHelp = `Exit status: 0 done, 1 another error, 2 wrong usage, 3 not found or offline,
4 unauthorised or forbidden, 5 timed out, aborted or cancelled, 6 no edge
available, or asked to try again later.`

// statusError ends the program with a status; its message was told.
type statusError struct {
	status int
	err    error
}

func (e *statusError) Error() string { return e.err.Error() }

func (e *statusError) Unwrap() error { return e.err }

// ExitCode returns the status that the program ends with.
func (e *statusError) ExitCode() int { return e.status }

// failed tells an error on stderr and gives it its exit status.
func failed(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	var lines []string
	for line := range strings.SplitSeq(sentence(err), "\n") {
		lines = append(lines, visible(line))
	}
	fmt.Fprintf(cmd.ErrOrStderr(), program+": %s\n", strings.Join(lines, "\n"+indent))
	return &statusError{exitStatus(err), err}
}

// sentence returns an error as people are told it.
func sentence(err error) string {
	if a, ok := errors.AsType[*advisedError](err); ok {
		return sentence(a.err) + ": " + a.advice
	}
	if e, ok := errors.AsType[*agora.Error](err); ok {
		if e.Cause != nil {
			return fmt.Sprintf("%s: %v (%s)", e.Message, e.Cause, e.Code)
		}
		return fmt.Sprintf("%s (%s)", e.Message, e.Code)
	}
	if errors.Is(err, context.DeadlineExceeded) {
		return "time is up"
	}
	return err.Error()
}

// usageError tells how the command is meant to be used.
func usageError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), program+": %s\nusage: %s\n", visible(err.Error()), cmd.UseLine())
	return &statusError{exitUsage, err}
}

func exitStatus(err error) int {
	if s, ok := errors.AsType[*statusError](err); ok {
		return s.status
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) ||
		errors.Is(err, client.ErrCancelled) || errors.Is(err, client.ErrUnknown) {
		return exitAborted
	}
	e, ok := errors.AsType[*agora.Error](err)
	if !ok {
		return exitError
	}
	switch e.Code {
	case agora.AgentNotFound, agora.AgentOffline, agora.SpaceNotFound, agora.StreamNotFound, agora.NotFound:
		return exitNotFound
	case agora.Unauthorized, agora.Forbidden:
		return exitForbidden
	case agora.Timeout, agora.StreamAborted:
		return exitAborted
	case agora.Unavailable, agora.RateLimited:
		return exitUnavailable
	}
	return exitError
}
