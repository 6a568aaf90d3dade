//go:build !unix

package terminal

import "errors"

// ErrBackground never comes: there are no programs in the background of a terminal.
var ErrBackground = errors.ErrUnsupported

// ReadInForegroundOnly does nothing here.
func ReadInForegroundOnly() {}
