package broker

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/broker/ledger"
)

// logUnavailable returns err as an agent may see it.
func logUnavailable(err error) *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log can't be reached now", RetryAfter: ledger.RetryAfter, Cause: err}
}

func full() *agora.Error {
	return &agora.Error{Code: agora.Unavailable, Message: "the message log is full", RetryAfter: ledger.RetryAfter}
}

func tooLarge(limit int) *agora.Error {
	return agora.Errorf(agora.MessageTooLarge, "the message does not fit the %d bytes that the log takes", limit)
}
