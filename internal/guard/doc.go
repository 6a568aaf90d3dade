// Package guard names what keeps messages from being lost, doubled or disordered; a build with the tag sabotage can
// leave each out, so that tests can show what it is needed for.
package guard
