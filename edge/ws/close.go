package ws

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
)

// Close codes that this door says (RFC 6455 section 7.4, the IANA registry,
// and 4000 onwards its own).
const (
	closeNormal    = 1000
	closeAway      = 1001
	closeProtocol  = 1002
	closeNoStatus  = 1005
	closePolicy    = 1008
	closeTooBig    = 1009
	closeRestart   = 1012
	closeTryLater  = 1013
	closeTakenOver = 4001
	closeExists    = 4009
	closeKicked    = 4010
)

// closes are the close codes of the causes for which an edge ends a connection.
var closes = map[edge.Cause]int{
	edge.Silent:    closeAway,
	edge.TakenOver: closeTakenOver,
	edge.Kicked:    closeKicked,
	edge.Drained:   closeRestart,
	edge.Shed:      closeTryLater,
}

// closeOf returns the close code behind an error that ends the connection; false for one that does not by itself.
func closeOf(c agora.Code) (int, bool) {
	switch c {
	case agora.Unauthorized:
		return closePolicy, true
	case agora.AgentExists:
		return closeExists, true
	case agora.Unavailable:
		return closeTryLater, true
	}
	return closePolicy, false
}

// closeCode returns the close code of a reason.
func closeCode(r edge.Reason) int {
	if code, ok := closes[r.Cause]; ok {
		return code
	}
	code, _ := closeOf(r.Code)
	return code
}
