// Package inbox keeps what an agent was sent until a reader has taken it: a message is acknowledged to the cluster when
// the reader says so, or has answered it, and not before.
package inbox
