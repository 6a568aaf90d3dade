package client

import "strings"

// Status says how a client stands with the cluster.
type Status struct {
	Edge    string // the address that it is connected to, or was tried last
	Resumed bool   // it is connected, and the session of before continues
	Err     error  // nil: it is connected; else why the connection was lost, or why no edge has taken it again so far
}

// status tells the application how the client stands. Anyone who connects calls it.
func (c *connector) status(resumed bool, err error) {
	c.cfg.OnStatus(Status{Edge: c.edge(), Resumed: resumed, Err: err})
}

// edge returns the address in use, without a token that may stand behind it.
func (c *connector) edge() string {
	address, _, _ := strings.Cut(c.addresses[c.at], "?")
	return address
}
