package ws

import (
	"github.com/agora-relay/agora"
	"github.com/agora-relay/agora/edge"
	"github.com/agora-relay/agora/edge/ws/frame"
)

// Close codes of Agora's own (RFC 6455 section 7.4.2).
const (
	closeTakenOver = 4001
	closeExists    = 4009
	closeKicked    = 4010
)

// closes are the close codes of the causes for which an edge ends a connection.
var closes = map[edge.Cause]int{
	edge.Silent:    frame.CloseAway,
	edge.TakenOver: closeTakenOver,
	edge.Kicked:    closeKicked,
	edge.Drained:   frame.CloseRestart,
	edge.Shed:      frame.CloseTryLater,
}

// closeOf returns the close code behind an error that ends the connection; false for one that does not by itself.
func closeOf(c agora.Code) (int, bool) {
	switch c {
	case agora.Unauthorized:
		return frame.ClosePolicy, true
	case agora.AgentExists:
		return closeExists, true
	case agora.Unavailable:
		return frame.CloseTryLater, true
	}
	return frame.ClosePolicy, false
}

// closeCode returns the close code of a reason.
func closeCode(r edge.Reason) int {
	if code, ok := closes[r.Cause]; ok {
		return code
	}
	code, _ := closeOf(r.Code)
	return code
}
