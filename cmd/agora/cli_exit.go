package main

import (
	"context"
	"errors"
	"fmt"

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
	message := err.Error()
	if e, ok := errors.AsType[*agora.Error](err); ok {
		message = fmt.Sprintf("%s (%s)", e.Message, e.Code)
		if e.Cause != nil {
			message = fmt.Sprintf("%s: %v (%s)", e.Message, e.Cause, e.Code)
		}
	} else if errors.Is(err, context.DeadlineExceeded) {
		message = "time is up"
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "agora: %s\n", message)
	return &statusError{exitStatus(err), err}
}

// usageError tells how the command is meant to be used.
func usageError(cmd *cobra.Command, err error) error {
	if err == nil {
		return nil
	}
	fmt.Fprintf(cmd.ErrOrStderr(), "agora: %v\nusage: %s\n", err, cmd.UseLine())
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
	case agora.AgentNotFound, agora.AgentOffline, agora.SpaceNotFound, agora.StreamNotFound:
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
