// Package soak puts a cluster under load through the Go client, cuts its
// connections, and counts every message: what the client said was stored must
// arrive once, in order, and streams must be whole.
//
// Everything that is sent carries a number. A line is what one sender sends to
// one agent, or into one space; a number that a later one has overtaken is
// lost, or comes out of order. What the cluster or the client tells to be lost
// is counted apart: gaps, refusals, aborted streams, calls whose outcome nobody knows.
//
// Memory is bounded by what is under way, whatever the length of a run.
package soak
