//go:build !unix

package main

import "errors"

// errBackground never comes: there are no programs in the background of a terminal.
var errBackground = errors.ErrUnsupported

func readInForegroundOnly() {}
