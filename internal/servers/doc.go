// Package servers runs NATS, Redis and Sentinel servers as processes of a test's own: they may
// be killed, frozen and started again, and do not outlive the test.
package servers
