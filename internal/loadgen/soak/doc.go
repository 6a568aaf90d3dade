// Package soak puts a cluster under load through the Go client, cuts its
// connections, and has verify hold what arrives against what the client said is
// stored. What the cluster or the client tells to be lost is counted apart:
// gaps, refusals, aborted streams, calls whose outcome nobody knows.
package soak
