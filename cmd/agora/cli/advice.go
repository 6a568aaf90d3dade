package cli

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"

	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/client"
	"github.com/agora-relay/agora/cmd/agora/exit"
)

// advised adds what to do to an error of a connection, where that is known. dialing tells that it was never made.
func (v *verb) advised(err error, dialing bool) error {
	advice := v.advice(err)
	if advice == "" && dialing {
		advice = v.dialAdvice(err)
	}
	if advice == "" {
		return err
	}
	return exit.Advise(err, advice)
}

// advice returns what to do about an error that ends a connection, or keeps it from being made.
func (v *verb) advice(err error) string {
	if errors.Is(err, client.ErrTakenOver) {
		return "an agent has one connection at a time; " + v.another()
	}
	e, ok := errors.AsType[*agora.Error](err)
	switch {
	case ok && e.Code == agora.AgentExists:
		return "an agent has one connection at a time: answer or publish at the prompt of the `agora listen` or `agora join` that it has, end that, or " + v.another()
	case ok && e.Code == agora.Unauthorized && v.TokenFile != "":
		return "--token-file must hold a token that the edges take"
	case ok && e.Code == agora.Unauthorized:
		return "give a token that the edges take, with --token-file or AGORA_TOKEN"
	}
	return ""
}

// another says how to be another agent.
func (v *verb) another() string {
	if v.idFlag == "" {
		return "be another agent"
	}
	return "be another agent (" + v.idFlag + ")"
}

// dialAdvice returns what to do about a connection that could not be made.
func (v *verb) dialAdvice(err error) string {
	if errors.Is(err, context.DeadlineExceeded) {
		return "--timeout gives more time, and --url says where edges are"
	}
	e, ok := errors.AsType[*agora.Error](err)
	if !ok {
		return ""
	}
	switch e.Code {
	case agora.Forbidden:
		return fmt.Sprintf("be an agent that the credentials are for (%s), or give others with --token-file or AGORA_TOKEN", v.idFlag)
	case agora.NotFound:
		return "is that the admin port of an edge, or another path than /ws? --url says where agents connect, such as ws://HOST:8080"
	case agora.InvalidRequest:
		return "--url says where edges are: wss:// where they speak TLS"
	case agora.Unavailable:
		return lineAdvice(e.Cause)
	}
	return ""
}

// lineAdvice returns what to do about a connection that did not come to a handshake.
func lineAdvice(cause error) string {
	if cause == nil {
		return ""
	}
	if _, unknown := errors.AsType[*tls.CertificateVerificationError](cause); unknown {
		return "--ca names the file of the CA that signs the certificates of edges"
	}
	if strings.Contains(cause.Error(), "certificate required") {
		return "--client-cert and --client-key name the files of a certificate"
	}
	if _, plain := errors.AsType[tls.RecordHeaderError](cause); plain {
		return "--url must begin with ws:// where edges do not speak TLS"
	}
	if _, ok := errors.AsType[net.Error](cause); ok {
		return "--url or AGORA_URL says where edges are"
	}
	return ""
}
