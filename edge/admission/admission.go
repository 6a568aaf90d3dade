// Package admission decides what an edge takes: connections by where they come from and whose they are, messages by
// rate, and less of both while the edge holds too much.
package admission
