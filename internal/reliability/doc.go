// Package reliability holds the failure matrix: tests that break every part of a cluster of real
// processes while agents talk, and account for every message. docs/reliability.md tells what they found.
package reliability
