// Package member makes an MCP server an agent of the cluster: its tools stand in the directory, and agents of every
// dialect call them.
package member
