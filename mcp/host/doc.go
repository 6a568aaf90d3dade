// Package host makes the host of a model, such as a coding agent, an agent of the cluster: it is an MCP server whose
// tools send, ask, read and answer.
package host
