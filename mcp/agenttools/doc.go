// Package agenttools offers the tools of the cluster's agents as tools of an MCP server.
package agenttools
