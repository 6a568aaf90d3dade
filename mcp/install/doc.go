// Package install makes the configuration by which a coding agent starts `agora mcp`, and has it tell what waits in its
// mailbox.
package install
