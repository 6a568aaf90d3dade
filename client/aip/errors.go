package aip

import (
	"context"
	"errors"

	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/agora-relay/agora"
	wire "github.com/agora-relay/agora/wire/aip"
)

// ErrClosed is returned by everything once Close was called.
var ErrClosed = errors.New("node is closed")

// The rules of a session: it is free, START_QUEST makes it occupied, and STOP_RESPONSE, or the end of its call, free
// again. Anyone who breaks them gets these errors, and nothing is sent.
var (
	ErrOccupied error = agora.Errorf(agora.InvalidRequest, "the session is occupied: START_QUEST is sent only while it is free")
	ErrFree     error = agora.Errorf(agora.InvalidRequest, "the session is free: HOLD_QUEST and STOP_QUEST are sent only while it is occupied")
	ErrStopping error = agora.Errorf(agora.InvalidRequest, "the session is being ended: STOP_QUEST has been sent")
	ErrNotEnded error = agora.Errorf(agora.InvalidRequest, "its initiator ends a session: no STOP_QUEST has come")
	ErrFinished error = agora.Errorf(agora.InvalidRequest, "the session has ended: STOP_RESPONSE has been sent")
)

// errNoGateway is returned by what needs a gateway where none is configured.
var errNoGateway error = agora.Errorf(agora.InvalidRequest, "no address of a gateway is given: Config.Gateways is empty")

// callStatus returns the error of a handler as the status of its call: that of the protocol or of [agora.Error] that it
// has, else ABORTED.
func callStatus(err error) *status.Status {
	if e, ok := errors.AsType[*agora.Error](err); ok {
		return status.New(codes.Code(e.Code.Status().GRPC), e.Message)
	}
	if s, ok := status.FromError(err); ok {
		return s
	}
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return status.FromContextError(err)
	}
	return status.New(codes.Aborted, err.Error())
}

// sessionStatus is callStatus for what ends a session: it speaks of the session, never of the agent, which would be
// deregistered for it.
func sessionStatus(err error) *status.Status {
	s := callStatus(err)
	if !wire.Deregisters(s.Code()) {
		return s
	}
	p := s.Proto()
	p.Code = int32(codes.Aborted)
	return status.FromProto(p)
}
