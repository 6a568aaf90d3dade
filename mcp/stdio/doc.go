// Package stdio carries the JSON-RPC of an MCP server over its stdin and stdout, a message to a line. No line ends the
// connection, and no id is spelled again.
package stdio
