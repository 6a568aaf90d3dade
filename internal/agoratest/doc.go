// Package agoratest runs a whole cluster inside one test: edges with real
// sockets, real NATS nodes, a real or an embedded presence server; and the suite of
// scenarios that a door must pass. Its client is a bare WebSocket: it knows no
// rule of the protocol, so that nothing is repaired on the way to a check.
package agoratest
